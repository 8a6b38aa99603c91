package job

import "time"

// Job is a job as a store holds it, live or archived.
type Job struct {
	ID           ID
	Queue        string
	Kind         string
	Version      int
	Priority     int
	Args         []byte
	HeaderBytes  []byte // as stored; Headers reads them
	Key          string
	Tags         []string
	Capabilities []string
	Budget       string

	Created  time.Time
	Due      time.Time     // when it may start; meaningful while waiting
	Timeout  time.Duration // of one attempt; 0 means the handler's
	Deadline time.Time     // zero means none

	Run         int64 // number of the newest claim; never decreases
	Used        int   // attempts burned
	MaxAttempts int
	Lost        int      // runs that ended with their process
	Rescues     int      // runs taken back from a lost worker, whether or not they had begun
	Snoozes     int      // runs that were put off
	Deferred    int      // times it was given back as a suspect that could not run alone
	Worker      WorkerID // who runs it; of a job that ended in a run, who ran it
	Started     time.Time
	State       State
	CancelAsked bool // a running job was asked to cancel
	Wait        Wait // what it waits for while suspended
	Ties        Ties // what it has beside itself

	Reason   string // why it is suspended, put off, dead or cancelled, where known
	Failures Failures
	Progress Progress
	Result   []byte

	Unique   Unique
	Finished time.Time // zero while live
	Expires  time.Time // when the archive drops it; zero while live

	Rare *Rare // what few jobs have; nil for the others

	// Unreadable names the fields that are empty because what is stored of them
	// cannot be read, such as "tags"; empty when all could be.
	Unreadable []string
}

// Rare is what few jobs have.
type Rare struct {
	// Gate is what the job waits behind: claims let through what its limit allows
	// (GateRules). Zero is none.
	Gate      int64
	Snoozed   time.Time // last
	Throttled time.Time // last
	Throttles int       // runs that were throttled in a row: since it last failed, was put off or retried
}

// Rarely is where what few jobs have is kept.
func (j *Job) Rarely() *Rare {
	if j.Rare == nil {
		j.Rare = &Rare{}
	}
	return j.Rare
}

// Throttles is how many of its runs were throttled in a row.
func (j *Job) Throttles() int {
	if j.Rare == nil {
		return 0
	}
	return j.Rare.Throttles
}

// Gate is what the job waits behind; zero is none.
func (j *Job) Gate() int64 {
	if j.Rare == nil {
		return 0
	}
	return j.Rare.Gate
}

// Attempt is the number of the attempt that is running or comes next, from 1.
func (j *Job) Attempt() int { return j.Used + 1 }

// StoreFailures counts the runs of this attempt that failed because the store did.
func (j *Job) StoreFailures() int {
	n := 0
	for _, f := range j.Failures.List() {
		if f.Store && f.Attempt == j.Attempt() {
			n++
		}
	}
	return n
}

// Progress is how far a handler says it is.
type Progress struct {
	Done, Total int64
	Note        string
}

// LogLine is one line that a handler logged.
type LogLine struct {
	Time  time.Time
	Run   int64
	Level int // as in log/slog
	Text  string
}
