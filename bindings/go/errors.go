// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong: the statuses of the C library as Go errors.

package waste

import (
	"errors"
	"fmt"
)

// Status is the kind of a failure, as the C library numbers them. It is an error itself, so that
// errors.Is(err, ErrIO) asks whether err is of that kind.
type Status int32

// The kinds of failure.
const (
	ErrIO          Status = -1  // the system refused an open, a read or a write
	ErrFormat      Status = -2  // this is not a file that the library understands
	ErrCorrupt     Status = -3  // it is one, and it is damaged: copy or convert it again
	ErrUnsupported Status = -4  // it is sound, and this build cannot run it
	ErrArgument    Status = -5  // the caller asked for something that cannot be
	ErrRAMBudget   Status = -6  // the budget is below the floor: see Error.Needed
	ErrNoMemory    Status = -7  // the system gave no memory or no thread
	ErrContextFull Status = -8  // the text does not fit the session's context
	ErrBusy        Status = -9  // another call on this session runs, or a stream of it lives
	ErrCancelled   Status = -10 // the context was done, or the object was closed meanwhile
	ErrVersion     Status = -11 // the file was written by a newer version
	ErrInternal    Status = -12 // a bug of the library: please report the message
)

var (
	// ErrClosed is what methods of a closed object return.
	ErrClosed = errors.New("waste: closed")
	// ErrABI is what every constructor returns if the libwaste that was found at run time is not
	// of the version that this package was made for.
	ErrABI = errors.New("waste: the native library is of another version")
	// ErrNoCgo is what every constructor returns if the program was built without cgo.
	ErrNoCgo = errors.New("waste: built without cgo, which this package needs; " +
		"build with CGO_ENABLED=1 and a C compiler")
)

var statusNames = [...]string{"OK", "IO", "FORMAT", "CORRUPT", "UNSUPPORTED", "ARGUMENT",
	"RAM_BUDGET", "NO_MEMORY", "CONTEXT_FULL", "BUSY", "CANCELLED", "VERSION", "INTERNAL"}

// String is the name that the C library gives the status, such as "RAM_BUDGET".
func (s Status) String() string {
	if s <= 0 && int(-s) < len(statusNames) {
		return statusNames[-s]
	}
	return fmt.Sprintf("status %d", int32(s))
}

// Error makes a Status a target for errors.Is.
func (s Status) Error() string { return "waste: " + s.String() }

// Error is a failure that the library reports.
type Error struct {
	Status  Status
	Message string // the library's, verbatim: names the file, the record and the numbers
	Needed  int64  // with ErrRAMBudget: the smallest budget that would do, in bytes; else 0

	cause error
}

// Error is "waste: " and the message; behind it the reason of a cancel.
func (e *Error) Error() string {
	text := "waste: " + e.Message
	if e.Message == "" {
		text = e.Status.Error()
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Is reports whether target is this error's Status.
func (e *Error) Is(target error) bool { return target == error(e.Status) }

// Unwrap returns why something was cancelled: the context's error, or ErrClosed. It is nil for all
// other errors.
func (e *Error) Unwrap() error { return e.cause }

// because adds the cause of a cancel to an error that is one.
func because(err, cause error) error {
	failure, ok := err.(*Error)
	if !ok || failure.Status != ErrCancelled || failure.cause != nil || cause == nil {
		return err
	}
	return &Error{Status: ErrCancelled, Message: failure.Message, cause: cause}
}
