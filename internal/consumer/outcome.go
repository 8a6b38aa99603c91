package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// dropPause is how long a delivery waits that its handler dropped without a verdict. Nothing
// is known about it, so it does not grow.
const dropPause = time.Second

// ended is everything about a delivery whose handler has returned.
type ended struct {
	ack      AckMode
	ordered  bool
	said     ruling
	result   result
	cause    error // why the handler's context has ended; nil: it has not
	failures int   // before
	most     int   // Config.Deliveries
	backoff  func(err error) time.Duration
}

// decision is what becomes of a delivery.
type decision struct {
	settle  bool // by settlement
	verdict stream.Settlement
	rest    time.Duration // of Kept, and of what is neither settled nor released: the next try here
	dropped bool
	failed  error // for the observer
}

// judge decides. The truth wins: what a handler says or returns of its own will stands,
// however late; only a plain error may be the echo of a cancelled context.
func judge(e ended) decision {
	err := e.result.err
	stopped := errors.Is(e.cause, job.ErrStopping) || errors.Is(e.cause, stream.ErrFeedLost)
	switch {
	case e.ack == OnReceive:
		return decision{failed: err}
	case e.said.what == ack:
		return decision{settle: true, verdict: stream.Settlement{Verdict: stream.Acked}, failed: panicOnly(e.result)}
	case e.said.what == reject:
		return e.dead(e.said.reason)
	case e.said.what == retry:
		return e.failed(cmp.Or(e.said.reason, "the handler asked for a retry"), func() time.Duration { return e.said.delay })
	case e.result.stack != nil:
		return e.failed(err.Error(), func() time.Duration { return e.backoff(err) })
	case e.ack == Manual && e.ordered:
		return decision{dropped: true, rest: dropPause}
	case e.ack == Manual:
		return decision{settle: true, dropped: true, verdict: stream.Settlement{Verdict: stream.Released, Delay: dropPause}}
	case err == nil:
		return decision{settle: true, verdict: stream.Settlement{Verdict: stream.Acked}}
	case stopped:
		return decision{settle: true, verdict: stream.Settlement{Verdict: stream.Released}}
	}
	return e.failed(err.Error(), func() time.Duration { return e.backoff(err) })
}

// failed counts a failure: it comes again, or was the last.
func (e ended) failed(reason string, delay func() time.Duration) decision {
	if e.failures+1 >= e.most {
		return e.dead(reason)
	}
	d := decision{settle: true, failed: errors.New(reason), rest: delay()}
	d.verdict = stream.Settlement{Verdict: stream.Retried, Delay: d.rest, Reason: reason}
	if e.ordered {
		d.verdict.Verdict, d.verdict.Delay = stream.Kept, 0
	}
	return d
}

func (e ended) dead(reason string) decision {
	v := stream.Settlement{Verdict: stream.Dead, Reason: cmp.Or(reason, "rejected"), Failures: e.failures + 1}
	return decision{settle: true, verdict: v, failed: errors.New(v.Reason)}
}

func panicOnly(r result) error {
	if r.stack != nil {
		return r.err
	}
	return nil
}

// unfit is why a delivery is given up, or done, without its handler; ok is true when it is.
func unfit(d *stream.Delivery, failures, most int, now time.Time) (s stream.Settlement, ok bool) {
	s.Ref = d.Ref
	switch {
	case d.Bad != nil:
		s.Verdict, s.Reason, s.Failures = stream.Dead, "it cannot be read: "+d.Bad.Error(), failures
	case d.Event.Expired(now):
		s.Verdict = stream.Acked
	case failures >= most:
		s.Verdict, s.Failures = stream.Dead, failures
		s.Reason = fmt.Sprintf("it has failed %d times of at most %d, and was lost with its process %d times",
			failures, most, d.Losses)
	default:
		return s, false
	}
	return s, true
}
