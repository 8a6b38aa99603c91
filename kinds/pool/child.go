package pool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/kinds/internal/guard"
)

const (
	// killLimit is how long the killed may take to go. Longer is a kernel that does not let go of them.
	killLimit = 10 * time.Second
	// exitLimit is how long a child that closed its stdout is waited for, to say how it exited.
	exitLimit = time.Second
)

// errNotAsked says that a child had ended before it was asked: another can be.
var errNotAsked = errors.New("the child had ended")

// child is one process of a pool. Its keeper has it, or lends it to a job, which gives it back.
type child struct {
	process *guard.Process
	stdin   *os.File
	stdout  *os.File
	stderr  *errorLog
	lines   chan line
	quit    chan struct{}  // closed when nobody listens any more
	busy    sync.WaitGroup // those who read and write
	back    chan error     // from the job; nil: it gave an answer
	gone    chan struct{}
}

// line is one that the child wrote, or why there are no more.
type line struct {
	text []byte
	err  error
}

func startChild(config Config) (_ *child, err error) {
	var theirs, ours []*os.File
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
		}
	}()
	dir, err := os.Open(config.Dir)
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, dir)
	var read, write [3]*os.File
	for i := range read {
		if read[i], write[i], err = os.Pipe(); err != nil {
			return nil, err
		}
		their, our := write[i], read[i]
		if i == 0 {
			their, our = our, their
		}
		theirs, ours = append(theirs, their), append(ours, our)
	}
	c := &child{
		stdin: write[0], stdout: read[1], stderr: newErrorLog(read[2], config.Logger.With("program", config.Path)),
		lines: make(chan line), quit: make(chan struct{}), back: make(chan error), gone: make(chan struct{}),
	}
	env := make([]string, 0, len(config.Env))
	for name, value := range config.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	c.process, err = guard.Start(guard.Program{
		Path: config.Path, Args: config.Args, Env: env, Dir: dir, Stdin: read[0], Stdout: write[1], Stderr: write[2],
		UID: config.UID, GID: config.GID, Grace: config.Grace,
	})
	if err != nil {
		return nil, err
	}
	c.busy.Go(func() { c.read(config.Line) })
	c.busy.Go(c.stderr.read)
	return c, nil
}

// read sends every line to who listens, until the child is ended or says what it may not.
func (c *child) read(most int) {
	r := bufio.NewReaderSize(c.stdout, 64<<10)
	for {
		text, err := readLine(r, most)
		select {
		case c.lines <- line{text, err}:
		case <-c.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// readLine reads one line of at most so many bytes.
func readLine(r *bufio.Reader, most int) (text []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > most:
			return nil, fmt.Errorf("the child wrote a line of more than %d bytes", most)
		case err == nil:
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) && len(text) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// write hands the child a line, while others read what it says meanwhile.
func (c *child) write(text []byte) <-chan error {
	written := make(chan error, 1)
	c.busy.Go(func() {
		n, err := c.stdin.Write(text)
		switch {
		case err == nil:
		case n == 0:
			err = fmt.Errorf("%w: %w", errNotAsked, err)
		default:
			err = fmt.Errorf("the child did not read what it was asked: %w", err)
		}
		written <- err
	})
	return written
}

// ended says how a child ended that has closed its stdout.
func (c *child) ended(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	left := time.NewTimer(exitLimit)
	defer left.Stop()
	select {
	case <-c.process.Exited():
	case <-left.C:
		return errors.New("the child closed its stdout")
	}
	exit := c.process.Exit()
	if exit.Signal != "" {
		return fmt.Errorf("the child was ended by signal %q", exit.Signal)
	}
	return fmt.Errorf("the child ended with exit code %d", exit.Code)
}

// end ends the child and all that it started, and returns when they are gone. The error says that they are not.
func (c *child) end(grace time.Duration) (err error) {
	defer close(c.gone)
	close(c.quit)
	_ = c.stdin.Close()
	c.process.End()
	left := time.NewTimer(grace + killLimit)
	defer left.Stop()
	select {
	case <-c.process.Done():
	case <-left.C:
		c.process.Kill()
		err = fmt.Errorf("process %d is left %v after it was killed; its guard goes on", c.process.PID(), killLimit)
	}
	_ = c.stdout.Close()
	c.stderr.close()
	c.busy.Wait()
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
