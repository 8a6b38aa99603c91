// Package cron says when something is due: by a cron expression in a time zone. It
// is pure: the time is always an argument.
//
// An expression has five fields (minute, hour, day of month, month, day of week) or
// six (second first), or is one of @yearly, @monthly, @weekly, @daily, @hourly and
// @every with a duration ("@every 90s").
//
//	field         values            may also be written
//	second        0-59
//	minute        0-59
//	hour          0-23
//	day of month  1-31              ? for *
//	month         1-12              jan-dec
//	day of week   0-7               sun-sat; 0 and 7 are Sunday; ? for *
//
// A field is a list of values, ranges (9-17) and steps (*/15, 8-18/2, 5/10). When
// both day fields leave something out, a day that matches either of them matches.
//
// # Changes of the clock
//
// An expression names times that the wall clock of its zone shows. Twice a year most
// zones skip some of them and show others twice. There are two kinds of expressions.
//
//  1. The hour is written as numbers ("0 3 * * *", "30 1,13 * * *", "* 2 * * *"). Each
//     named time of a day is due exactly once. One that the clock skips is due at the
//     first instant after the gap; several of them are one, and so is one that is
//     named there anyway. One that the clock shows twice is due the first time.
//  2. The hour is any: a star, also with a step ("30 * * * *", "*/10 * * * *",
//     "0 */2 * * *"), or a list that leaves no hour out. It is due whenever the clock
//     shows a named time: twice when it does so twice, and not at all when it does
//     not. So where the clock moves by an hour, "30 * * * *" is due once in each real
//     hour, the 23 and the 25 of such days.
//
// Example, New York: on 8 March 2026 the clock goes from 2:00 to 3:00, on 1 November
// from 2:00 back to 1:00.
//
//	30 2 * * *    8 March at 3:00, once         1 November at 2:30, once
//	30 1 * * *    8 March at 1:30               1 November at the first 1:30, once
//	30 * * * *    8 March at 1:30, then 3:30    1 November at 0:30, 1:30, 1:30, 2:30
//
// @every does not look at the wall clock: it is due at its anchor and whole multiples
// of the duration after it, so that it drifts neither by late fires nor by restarts.
package cron
