package ptrace

import (
	"context"

	"example.com/reframe/ptrace/tracer"
)

// driver controls the process of a [Session]. It is the connection to a tracer, or a [debugger].
type driver interface {
	// Do makes a request and returns its reply. An error of a driver that lacks an operation names it.
	Do(tracer.Request) (*tracer.Reply, error)
	// DoUntil is Do for a request that may take long. If ctx is done, the error is its cause.
	DoUntil(context.Context, tracer.Request) (*tracer.Reply, error)
	// Send makes a request without a reply.
	Send(tracer.Request) error
	// Event waits for the next event. If ctx is done, the error is its cause, and the process keeps running.
	Event(context.Context) (*tracer.Event, error)
	// Waiting reports whether an event has come that Event has not returned.
	Waiting() bool
	// Take removes and returns the events of a kind that have come.
	Take(tracer.EventKind) []*tracer.Event
	// TakeAway removes and returns the events of the kind Away, and hits before them.
	TakeAway() []*tracer.Event
	// Released reports whether the process was let run although the caller has not seen that.
	Released() bool
	// Close ends the driver, which restores everything.
	Close() error
}
