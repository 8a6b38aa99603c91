package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// local serves requests by a handler of this process, so that a store is asked by the same
// calls as a server. Answers are streamed: a body that is closed ends its request.
type local struct{ handler http.Handler }

var errHungUp = errors.New("the caller has hung up")

// RoundTrip returns when the handler has begun to answer.
func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	inner := r.Clone(ctx)
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	inner.RequestURI, inner.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	from, to := io.Pipe()
	w := &localWriter{header: http.Header{}, begun: make(chan struct{}), to: to}
	go func() {
		defer cancel()
		defer inner.Body.Close()
		l.handler.ServeHTTP(w, inner)
		w.WriteHeader(http.StatusOK) // if it has not
		_ = to.Close()
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		select {
		case <-w.begun: // ended already
		default:
			_ = to.CloseWithError(ctx.Err())
			return nil, ctx.Err()
		}
	}
	stop := context.AfterFunc(r.Context(), func() { _ = to.CloseWithError(r.Context().Err()) })
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.sent, Request: r, ContentLength: -1,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: &localBody{from, func() { stop(); cancel() }},
	}, nil
}

// localBody ends the request when it is closed.
type localBody struct {
	*io.PipeReader
	end func()
}

func (b *localBody) Close() error {
	b.end()
	return b.CloseWithError(errHungUp)
}

// localWriter is where the handler writes.
type localWriter struct {
	header, sent http.Header
	status       int
	once         sync.Once
	begun        chan struct{}
	to           *io.PipeWriter
}

func (w *localWriter) Header() http.Header { return w.header }

func (w *localWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *localWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(p)
}

// Flush is for streams: nothing is held back.
func (w *localWriter) Flush() { w.WriteHeader(http.StatusOK) }
