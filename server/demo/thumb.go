package demo

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlwork/pawl"
)

// Thumb makes a small picture of an upload.
type Thumb struct {
	Upload   int64 `json:"upload"`
	Channels int   `json:"channels"` // as the header of the picture says
}

// Kind is "thumb.make".
func (Thumb) Kind() string { return "thumb.make" }

// Defaults puts it into the queue of pictures.
func (Thumb) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("thumbs"), pawl.Attempts(3)}
}

// newThumb is that of an upload: one in fifteen has a header that says more than there is.
func newThumb(n int64) Thumb {
	t := Thumb{Upload: n, Channels: 2}
	if n%15 == 4 {
		t.Channels = 3
	}
	return t
}

// Picture is what was made.
type Picture struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// thumb believes the header, which is its bug.
func (s *shop) thumb(ctx context.Context, j *pawl.Job[Thumb]) (Picture, error) {
	if !pause(ctx, time.Duration(80+rand.IntN(300))*time.Millisecond) {
		return Picture{}, context.Cause(ctx)
	}
	pixels := []int{160, 120, 255}
	return Picture{Width: pixels[0], Height: pixels[1] + pixels[j.Args.Channels] - 255}, nil
}
