// Package demo is a small company to look at: a shop with orders, mails, invoices and tenants, run by real handlers on
// the real engine. Nothing is written into the store but by enqueuing and working.
//
//	website (orders, uploads, syncs) --> the served engine --> store <-- workers 1.8.2, later 1.8.3
//	                                                                 <-- a process for feeds, which one feed kills
//	                                                                 <-- nobody for legacy-sync, until you start it
//
// What fails does so by rule, so that it is the same each time: a twelfth of the mails are refused at first, one order in
// a hundred has no VAT id, one upload in fifteen has a broken header, and one feed takes its process along.
package demo
