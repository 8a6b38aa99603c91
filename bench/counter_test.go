package main

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestCounter_CountsStatementsAndPassesEverythingOn(t *testing.T) {
	message := func(kind byte, body string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
	}
	first := append(binary.BigEndian.AppendUint32(nil, 8+5), 0, 3, 0, 0, 'u', 's', 'e', 'r', 0)
	sent := bytes.Join([][]byte{
		first,
		message('P', "\x00select 1\x00\x00\x00"), message('D', "S\x00"), message('S', ""), // prepares
		message('B', "\x00\x00"), message('E', "\x00\x00\x00\x00\x00"), message('S', ""), // executes
		message('Q', "begin\x00"),
		message('X', ""),
	}, nil)
	var c counter
	var passed bytes.Buffer
	if err := c.relay(&passed, bytes.NewReader(sent)); err == nil {
		t.Error("the end of the stream is no error")
	}
	if !bytes.Equal(passed.Bytes(), sent) {
		t.Errorf("passed on\n%q, sent\n%q", passed.Bytes(), sent)
	}
	if c.Statements() != 2 {
		t.Errorf("%d statements, want 2: the execution and the simple query", c.Statements())
	}
}

// A request to cancel is a connection of its own with one message.
func TestCounter_CancelRequestIsNoStatement(t *testing.T) {
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 16), cancelRequest)
	request = append(request, 0, 0, 0, 1, 0, 0, 0, 2)
	var c counter
	var passed bytes.Buffer
	if err := c.relay(&passed, bytes.NewReader(request)); err != nil || passed.Len() != 16 || c.Statements() != 0 {
		t.Errorf("%v, %d bytes passed on, %d statements; want nil, 16, 0", err, passed.Len(), c.Statements())
	}
}
