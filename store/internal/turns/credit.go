package turns

import "math"

// maxCredit is how many turns a gate may have to its credit.
const maxCredit = 128

// credit is what a gate has missed: while others had turns and nothing waited there, up
// to a bound. With it a key that comes seldom has its jobs begun soon, and over time
// none has more than its share.
//
// Time is counted in turns: by one when each gate of the queue that has jobs has had its
// weight in jobs.
type credit struct {
	left  float64 // turns
	away  bool    // nothing was ready at the last visit, and nobody told of a job since
	since float64 // while it is away
}

// at is how many turns it is at a time.
func (c *credit) at(time float64) float64 {
	if !c.away {
		return c.left
	}
	return min(c.left+time-c.since, maxCredit)
}

// come notes that something waits: from now on its turns come by themselves.
func (c *credit) come(time float64) { *c = credit{left: c.at(time)} }

// leave notes that nothing is ready.
func (c *credit) leave(time float64) {
	if !c.away {
		c.away, c.since = true, time
	}
}

// settle takes a visit over.
func settle[T any](c *credit, v *Visit[T], told bool, time float64) {
	switch {
	case v.Took > 0:
		*c = credit{left: max(v.Of.Credit-float64(v.Ahead)/float64(max(v.Weight, 1)), 0)}
	case (v.Idle || v.Gone) && !told:
		c.leave(time)
	}
}

// pass lets the time of a queue pass for what was taken.
func pass[T any](r *ring[T], visits []Visit[T]) {
	took, weight := 0, 0
	for i := range visits {
		if v := &visits[i]; v.Took > 0 { // what came on credit is no turn
			took, weight = took+v.Took-min(v.Ahead, v.Took), weight+max(v.Weight, 1)
		}
	}
	if took == 0 {
		return
	}
	part := min(float64(len(visits))/float64(max(len(r.gates), 1)), 1) // of the gates
	r.time += part * float64(took) / float64(weight)
	if r.time > math.MaxInt32 { // far beyond what counts
		r.time, r.fresh = 0, credit{away: true}
		for _, g := range r.gates {
			g.credit = credit{}
		}
		clear(r.gone)
	}
}
