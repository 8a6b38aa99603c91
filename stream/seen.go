package stream

import "time"

// Window is for how long ids and idempotency keys are remembered, by the store's clock.
const Window = 24 * time.Hour

// SeenName is what an event is known by within the window: its id, or the key that its
// publisher gave for it. Names are those of a topic.
type SeenName struct {
	Topic string
	Key   bool // an idempotency key, not an id
	Text  string
}

// SeenEvent is the event that a name stands for.
type SeenEvent struct {
	ID      string
	Seq     int64 // below 0: it is delayed, and this names it among those
	Version int64 // of its key; 0: none
}

// Reply is what a publisher is told of it.
func (e *SeenEvent) Reply(epoch uint32, duplicate bool) PublishReply {
	if e.Seq < 0 {
		return PublishReply{ID: e.ID, Duplicate: duplicate, Delayed: true}
	}
	return PublishReply{ID: e.ID, Position: At(epoch, e.Seq), Version: e.Version, Duplicate: duplicate}
}

// Names are what an event is known by; the idempotency key goes before the id. Events whose
// id was made for them have none.
func (d *Publication) Names() (list []SeenName) {
	if d.Idempotency != "" {
		list = append(list, SeenName{d.Topic, true, d.Idempotency})
	}
	if d.Given {
		list = append(list, SeenName{d.Topic, false, d.ID})
	}
	return list
}

// AnyNames reports whether some of them are known by names.
func AnyNames(drafts []Publication) bool {
	for i := range drafts {
		if drafts[i].Given || drafts[i].Idempotency != "" {
			return true
		}
	}
	return false
}

// Sifted is what becomes of one event of a call: it is appended, or stands for one that was
// accepted before, or for an earlier one of the call.
type Sifted struct {
	Fresh bool
	Of    SeenEvent // that was accepted before
	Like  int       // place in the call of the one that it repeats; -1: none
}

// Sift says which events of a call are new. found is what the log knows of their names.
// All names of an event that is not new stand for the same one afterwards.
func Sift(drafts []Publication, found map[SeenName]SeenEvent) []Sifted {
	list := make([]Sifted, len(drafts))
	first := map[SeenName]int{}
	for i := range drafts {
		s := Sifted{Fresh: true, Like: -1}
		names := drafts[i].Names()
		for _, n := range names {
			if e, ok := found[n]; ok {
				s = Sifted{Of: e, Like: -1}
				break
			}
			if j, ok := first[n]; ok {
				if s = list[j]; s.Fresh {
					s = Sifted{Like: j}
				}
				break
			}
		}
		for _, n := range names {
			if _, ok := first[n]; !ok {
				first[n] = i
			}
		}
		list[i] = s
	}
	return list
}

// Resolve completes what events of a call stand for, once the fresh ones are there: by place
// in the call.
func Resolve(drafts []Publication, sifted []Sifted, fresh []SeenEvent) []SeenEvent {
	list := make([]SeenEvent, len(drafts))
	for i, s := range sifted {
		switch {
		case s.Fresh:
			list[i] = fresh[i]
			list[i].ID = drafts[i].ID
		case s.Like >= 0:
			list[i] = list[s.Like]
		default:
			list[i] = s.Of
		}
	}
	return list
}
