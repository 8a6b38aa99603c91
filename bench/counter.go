package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
)

// counter stands between a Postgres server and its clients and counts the statements they send. On the wire they are
// the same for every client and driver, and the server needs no extension. It lives as long as the process.
type counter struct {
	Address string // like the server's, but through the counter

	server     string
	statements atomic.Int64
	open, most atomic.Int64 // connections
}

// startCounter begins to listen on a loopback port.
func startCounter(address string) (*counter, error) {
	server, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if server.Hostname() == "" || server.Port() == "" {
		return nil, fmt.Errorf("the address of Postgres has no host and port to stand in front of")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &counter{server: server.Host}
	through := *server
	through.Host = listener.Addr().String()
	// What is encrypted cannot be counted.
	query := through.Query()
	query.Set("sslmode", "disable")
	through.RawQuery = query.Encode()
	c.Address = through.String()
	go c.accept(listener)
	return c, nil
}

// Statements is how many have been sent so far.
func (c *counter) Statements() int64 { return c.statements.Load() }

// Connections is how many were open at once at most.
func (c *counter) Connections() int64 { return c.most.Load() }

func (c *counter) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go c.serve(client)
	}
}

// serve connects one client. When one direction is over, so is the other.
func (c *counter) serve(client net.Conn) {
	defer client.Close()
	defer c.open.Add(-1)
	for open := c.open.Add(1); ; {
		if most := c.most.Load(); open <= most || c.most.CompareAndSwap(most, open) {
			break
		}
	}
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	over := make(chan error, 2)
	go func() { _, err := io.Copy(client, server); over <- err }()
	go func() { over <- c.relay(server, client) }()
	<-over
}

// cancelRequest is the code of the only first message that is not followed by others.
const cancelRequest = 80877102

// relay passes on what a client sends, message by message. The first one has no type byte; each later one has, and a
// statement is a simple query (Q), an execution of a prepared one (E) or a function call (F).
func (c *counter) relay(server io.Writer, client io.Reader) error {
	in := bufio.NewReader(client)
	var first [8]byte
	if _, err := io.ReadFull(in, first[:]); err != nil {
		return err
	}
	if err := pass(server, in, first[:], int64(binary.BigEndian.Uint32(first[:4]))-8); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(first[4:]) == cancelRequest {
		return nil
	}
	for {
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		switch head[0] {
		case 'Q', 'E', 'F':
			c.statements.Add(1)
		}
		if err := pass(server, in, head[:], int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return err
		}
	}
}

// pass sends a message's head and the rest of it.
func pass(to io.Writer, from io.Reader, head []byte, rest int64) error {
	if rest < 0 {
		return errors.New("not a Postgres message")
	}
	if _, err := to.Write(head); err != nil {
		return err
	}
	_, err := io.CopyN(to, from, rest)
	return err
}
