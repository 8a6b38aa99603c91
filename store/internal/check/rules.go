package check

import "github.com/pawlwork/pawl/store"

// Sentences are the rules of P6 by their names: what holds in a sound database.
var Sentences = map[string]string{
	"live job in a final state":                "A live job is blocked, waiting, running or suspended.",
	"job in two places":                        "A job is live or archived, and not both.",
	"running without a worker":                 "A running job has a worker, a claim and a run number.",
	"worker of a job that does not run":        "Only a running job has a worker, a claim, or a request to cancel.",
	"running without a live worker":            "A run whose worker is lost or gone is taken back within the grace.",
	"unique key not held":                      "A live job with a unique key holds it.",
	"unique key without its job":               "A unique key is held by a live job that has it, or kept until a time.",
	"ties do not add up":                       "The ties of a job name what it has beside its row.",
	"attempts out of bounds":                   "A job has used 0 attempts or more, and may use 1 or more.",
	"priority out of bounds":                   "A priority is 1 to 9.",
	"counts below zero":                        "Runs, losses, rescues, snoozes and throttles are counted from 0, and never less.",
	"due at no time":                           "A job is due at a time that can be written down.",
	"wait of a job that is not suspended":      "Only a suspended job waits for something outside.",
	"failures cannot be read":                  "The failures of a job are as this build writes them.",
	"names cannot be read":                     "Tags and capabilities are lists of names.",
	"archived job in a live state":             "An archived job is done, dead, cancelled or skipped.",
	"archived without an end":                  "An archived job is kept until a time that is not before its end.",
	"log lines do not add up":                  "A job counts its log lines, which are numbered from 1.",
	"log lines without their job":              "Log lines belong to a job that is live, archived or just gone.",
	"intent out of bounds":                     "An intent has a kind, no less than 0 failures, and a subject and payload within their bounds.",
	"intent put off for nothing":               "An intent that never failed waits only behind one that did.",
	"row of no namespace":                      "Rows are of a namespace that exists.",
	"declaration without its version":          "A declaration is of a version that has, or had, a worker.",
	"declaration cannot be read":               "What is declared is a JSON object.",
	"override cannot be read":                  "What operators set is a JSON object.",
	"live version without a live worker":       "A version of code is live while it has a live worker.",
	"ended version with a live worker":         "A version of code that has a live worker has not ended.",
	"cool-down of no length":                   "A cool-down ends after it began, and somebody was throttled.",
	"pause of an unknown scope":                "A pause is of a queue, of a kind or of everything.",
	"worker that left and is not lost":         "A worker that has left the registry is lost.",
	"operation without an end":                 "An operation has an end, and an expiry, when it is not open any more.",
	"operation miscounted":                     "An operation has looked at as many jobs as it counts by what became of them.",
	"bucket over its burst":                    "A bucket holds, with the blocks that were taken of it, no more than its burst.",
	"metric out of bounds":                     "What was measured begins with its minute or hour, and says when it is rolled up.",
	"metric without its flush":                 "What a process measured is marked as kept by its flush.",
	"metric in two places":                     "What was rolled up into an hour is not kept by the minute as well.",
	"schedule due again":                       "A schedule is due later than when it was dealt with last.",
	"schedule out of bounds":                   "A schedule counts from 0 what it fired and skipped, and has a last job if there were any.",
	"member without its group":                 "A member of a group is one of a group that exists.",
	"member without its place":                 "A member has a place in the log.",
	"delivery of a member that is gone":        "What a member works on is with a member that exists.",
	"stripe of a member that is gone":          "A stripe is read by a member that exists, or by nobody.",
	"place beyond the log":                     "Nobody has read further than the last number that was given out.",
	"acknowledgement of a member that is gone": "What a transaction acknowledged is of a member that exists.",
	"worker numbers go backwards":              "No worker has a number above the last that was given out.",
}

// Rule is a rule of a table, with its sentence.
func Rule(table, name, repair string) store.Rule {
	return store.Rule{Name: name, Table: table, Says: Sentences[name], Repair: repair}
}
