package store

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/stream"
)

// CursorRow is a cursor as stores keep it.
type CursorRow struct {
	Filter string // FilterText
	Turn   int64
	Epoch  uint32
	Seq    int64
	Losses int
	Holder uuid.UUID // zero: nobody
	Until  time.Time // of its lease; zero: it has none
}

// At is where it is, in the log's epoch.
func (r *CursorRow) At(epoch uint32) stream.Position {
	if r.Epoch == 0 {
		return stream.Position{} // before everything
	}
	return stream.At(epoch, r.Seq)
}

// Open makes o's holder that of the cursor. The row is what is to be stored then.
func (r *CursorRow) Open(o *CursorOpen, epoch uint32, now time.Time) (s CursorState, err error) {
	if asked := FilterText(o.Filter); r.Filter != asked {
		return s, OtherFilter(o.Name, r.Filter, asked)
	}
	leased := !r.Until.IsZero() && r.Holder != o.Holder
	if leased && now.Before(r.Until) {
		return s, HeldUntil(o.Name, r.Until)
	}
	if leased {
		r.Losses++ // it did not say that it goes
	}
	s.Anchored = r.Epoch != 0 && r.Epoch != epoch
	if r.Epoch != 0 {
		r.Epoch = epoch
	}
	r.Turn++
	r.Holder, r.Until = o.Holder, time.Time{}
	if o.Lease > 0 {
		r.Until = now.Add(o.Lease)
	}
	s.Turn, s.At, s.Losses = r.Turn, r.At(epoch), r.Losses
	return s, nil
}

// Put moves it to a position.
func (r *CursorRow) Put(to stream.Position) { r.Epoch, r.Seq = to.Epoch(), to.Seq() }

// NewCursorRow is that of a cursor that nobody has opened yet.
func NewCursorRow(o *CursorOpen) CursorRow {
	r := CursorRow{Filter: FilterText(o.Filter)}
	r.Put(o.Start)
	return r
}

// FilterText is a filter as it is stored and compared.
func FilterText(f stream.Filter) string {
	if m, err := f.Matcher(); err == nil {
		f = m.Filter // in its one form
	}
	if !f.After.IsZero() {
		f.After = f.After.UTC()
	}
	if !f.Before.IsZero() {
		f.Before = f.Before.UTC()
	}
	b, _ := json.Marshal(f) // text and times: nothing can be wrong
	return string(b)
}

// ParseFilter reads what FilterText wrote.
func ParseFilter(text string) (f stream.Filter, err error) {
	err = json.Unmarshal([]byte(text), &f)
	return f, err
}
