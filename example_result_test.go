package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pawlwork/pawl"
)

// seconds looks once. The caller, a page or an API, asks again later.
func seconds(ctx context.Context, e *pawl.Engine, id pawl.ID) (string, error) {
	video, err := pawl.Result[Video](ctx, e, id)
	switch {
	case err == nil:
		return fmt.Sprint(video.Seconds, " s"), nil
	case errors.Is(err, pawl.ErrNotDone):
		j, err := e.Get(ctx, id)
		if err != nil {
			return "", err
		}
		if j.State.Final() { // dead or cancelled: there will be none
			return "", fmt.Errorf("%s: %s", j.State, j.Reason)
		}
		return "not yet", nil
	default: // ErrNotFound: no such job, or it is no longer kept
		return "", err
	}
}

func ExampleResult() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.HandleResult(e, func(ctx context.Context, j *pawl.Job[Encode]) (Video, error) {
		if j.Args.Video == 10 {
			stop()
			return Video{}, pawl.Dead(errors.New("no such file"))
		}
		return Video{Seconds: 90}, nil
	})
	good, err := e.Enqueue(ctx, Encode{Video: 9}, pawl.Priority(1))
	if err != nil {
		log.Fatal(err)
	}
	bad, err := e.Enqueue(ctx, Encode{Video: 10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(seconds(ctx, e, good.ID))
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	ctx = context.Background()
	fmt.Println(seconds(ctx, e, good.ID))
	fmt.Println(seconds(ctx, e, bad.ID))
	fmt.Println(seconds(ctx, e, pawl.ID{}))
	// Output:
	// not yet <nil>
	// 90 s <nil>
	//  dead: the handler gave up
	//  pawl: no such job: 00000000-0000-0000-0000-000000000000
}

// A result that is written in the transaction of the effect.
func ExampleTx_FinishResult() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, "create table video(id integer, seconds integer)"); err != nil {
		log.Fatal(err)
	}

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Encode]) error {
		defer stop()
		return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Exec(ctx, "insert into video values ($1, $2)", j.Args.Video, 90); err != nil {
				return err
			}
			return tx.FinishResult(j, Video{Seconds: 90})
		})
	})
	r, err := e.Enqueue(ctx, Encode{Video: 9})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(pawl.Result[Video](context.Background(), e, r.ID))
	// Output: {90} <nil>
}
