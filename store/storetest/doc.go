// Package storetest proves that a store keeps the rules of package store.
//
// [Run] is the conformance suite: one file per verb, named as the stores name
// theirs, each case on a fresh database that must pass [store.Upkeep.Check]
// when the case ends. [RunModel] plays random programs on one or more stores at
// once and on a plain map model that shares no rule with them. [RunLinear]
// records claims, finishes, cancels and retries made at the same time and asks
// whether some order of them explains every answer.
//
// What a store can do is data ([Features]). The suite never asks a store its
// name: it leaves out the cases whose needs are not declared, and
// docs/conformance.md, kept in step by a test, shows which those are.
//
// # Time
//
// No case waits. A store under test has a method SetClockOffset that shifts its
// clock, and cases shift it by minutes or more, so that the few milliseconds a
// case takes never decide what it sees.
package storetest
