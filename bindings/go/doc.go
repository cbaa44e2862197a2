// SPDX-License-Identifier: Apache-2.0

// Package waste runs mixture-of-experts language models that are larger than memory, in process,
// through the C library libwaste.
//
//	model, err := waste.Open("mini.waste")
//	if err != nil { … }
//	defer model.Close()
//	chat := model.NewChat(waste.System("You are terse."))
//	defer chat.Close()
//	answer, err := chat.Ask(ctx, "What is the capital of Italy?")
//
// Rules that hold for the whole package:
//
// Threads: a Model may be used by any number of goroutines. A Session and its Stream are for one
// call at a time; a second one gets ErrBusy. Close may be called at any time from any goroutine. A
// call that waits for the engine occupies a thread of the system for as long as it takes, and the
// steps of all sessions of one model run one after another, so a server should bound how many
// answers it makes at a time.
//
// Lifetime: Close is idempotent and may come in any order. Closing a Model closes its sessions, and
// closing a Session its stream; what runs then is cancelled, and Close waits for it for at most a
// second. Methods of a closed object return ErrClosed. What is not closed is freed when the
// collector finds it.
//
// Errors: *Error, which errors.Is compares with ErrIO and the other values of Status.
//
// Text is UTF-8. Text that is not is refused with ErrArgument and never repaired; text that comes
// from a model always is UTF-8, and no character is ever cut.
package waste
