package demo

import (
	"context"
	"os/exec"
	"time"
)

// feedsGrace is how long a process for feeds may take to end.
const feedsGrace = 10 * time.Second

// keepFeeds keeps a process for feeds alive, as a supervisor of a machine would.
func (c *Company) keepFeeds(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.feedOnce(ctx); err != nil && ctx.Err() == nil {
			c.config.Logger.Info("the process for feeds has ended, and is started again", "how", err)
		}
		pause(ctx, c.config.Restart)
	}
}

// feedOnce runs one until it ends. It ends with its standard input, so that it does not outlive
// this process, however that ends.
func (c *Company) feedOnce(ctx context.Context) error {
	cmd := c.config.Feeds()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = in.Close()
	return c.endFeeds(cmd, ended)
}

// endFeeds waits for the end, and does not wait for ever.
func (c *Company) endFeeds(cmd *exec.Cmd, ended <-chan error) error {
	timer := time.NewTimer(feedsGrace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		c.config.Logger.Warn("the process for feeds did not end in time, and is killed")
		_ = cmd.Process.Kill()
		return <-ended
	}
}
