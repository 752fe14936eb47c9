package ptrace

import (
	"context"

	"example.com/reframe/ptrace/tracer"
)

// driver controls the process of a [Session]. It is the connection to a tracer, or a [debugger].
type driver interface {
	// Do makes a request and returns its reply. An error of a driver that lacks an operation names it.
	Do(tracer.Request) (*tracer.Reply, error)
	// DoUntil is like Do, for a request that may take long. If ctx is done, the error is its cause.
	DoUntil(context.Context, tracer.Request) (*tracer.Reply, error)
	// Send makes a request without a reply.
	Send(tracer.Request) error
	// Event waits for the next event. If ctx is done, the error is its cause, and the process continues to run.
	Event(context.Context) (*tracer.Event, error)
	// Waiting reports whether an event has arrived that Event has not returned.
	Waiting() bool
	// Take removes and returns the events of a kind that have arrived.
	Take(tracer.EventKind) []*tracer.Event
	// TakeAway removes and returns the events of the kind Away, and the hits before them.
	TakeAway() []*tracer.Event
	// Released reports whether the process was resumed without the caller's knowledge.
	Released() bool
	// Close ends the driver, which removes breakpoints and detaches.
	Close() error
}
