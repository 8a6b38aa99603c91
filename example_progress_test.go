package pawl_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/pawlwork/pawl"
)

// What a handler says is kept with its job, for whoever looks.
func ExampleInfo_Progress() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Encode]) error {
		defer stop()
		j.Log().Info("started", "video", j.Args.Video)
		const chunks = 4
		for i := range chunks {
			// … the work of one chunk …
			if err := j.Progress(ctx, int64(i)+1, chunks); err != nil {
				return err // the context is cancelled: this is the cause
			}
		}
		j.Log().Warn("no sound", "track", 1)
		return nil
	})
	r, err := e.Enqueue(ctx, Encode{Video: 9})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}

	ctx = context.Background()
	j, err := e.Get(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(j.Progress.Done, "of", j.Progress.Total)
	lines, err := e.Logs(ctx, r.ID, 0, 100) // from the first line, 100 at most
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range lines {
		fmt.Println(slog.Level(line.Level), line.Text)
	}
	// Output:
	// 4 of 4
	// INFO started video=9
	// WARN no sound track=1
}
