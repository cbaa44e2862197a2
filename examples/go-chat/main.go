// SPDX-License-Identifier: Apache-2.0
//
// A chat in the terminal: go-chat MODEL [SYSTEM MESSAGE]. Answers are streamed. Ctrl-C cancels the
// answer that comes, and quits where none does; so does the end of the input, or a second Ctrl-C
// for one answer.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	waste "github.com/libwaste/waste/bindings/go"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go-chat MODEL [SYSTEM MESSAGE]")
		os.Exit(2)
	}
	if err := run(os.Args[1], strings.Join(os.Args[2:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path, system string) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	model, err := open(path, interrupts)
	if err != nil {
		return err
	}
	defer model.Close()
	var options []waste.SessionOption
	if system != "" {
		options = append(options, waste.System(system))
	}
	chat, err := model.NewSession(options...)
	if err != nil {
		return err
	}
	defer chat.Close()

	lines, failed := readLines()
	for {
		fmt.Print("> ")
		select {
		case <-interrupts:
			fmt.Println()
			return nil
		case line, more := <-lines:
			if !more {
				fmt.Println()
				return <-failed
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			if err := answer(chat, line, interrupts); err != nil {
				return err
			}
		}
	}
}

// open shows how far it is, which matters for large models.
func open(path string, interrupts <-chan os.Signal) (*waste.Model, error) {
	ctx, done := cancelledBy(interrupts)
	defer done()
	shown := false
	model, err := waste.OpenContext(ctx, path, waste.WithProgress(func(p waste.Progress) {
		if p.Done < p.Total {
			shown = true
			fmt.Fprintf(os.Stderr, "\rloading %3d %%", 100*p.Done/p.Total)
		}
	}))
	if shown {
		fmt.Fprintln(os.Stderr)
	}
	var failure *waste.Error
	if errors.As(err, &failure) && failure.Status == waste.ErrRAMBudget {
		return nil, fmt.Errorf("%w (%d MiB would do)", err, failure.Needed>>20)
	}
	return model, err
}

// answer streams one. That it was cancelled is no failure of the chat.
func answer(chat *waste.Session, prompt string, interrupts <-chan os.Signal) error {
	ctx, done := cancelledBy(interrupts)
	defer done()
	stream := chat.Stream(ctx, prompt)
	defer stream.Close()
	for stream.Next() {
		fmt.Print(stream.Piece().Text)
	}
	err := stream.Err()
	if errors.Is(err, waste.ErrCancelled) {
		fmt.Println(" [cancelled]")
		return nil
	}
	if stream.Result().FinishReason == waste.FinishLength {
		fmt.Print(" [the conversation is full]")
	}
	fmt.Println()
	return err
}

// cancelledBy is a context that an interrupt ends. A second one stays for run to see.
func cancelledBy(interrupts <-chan os.Signal) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// readLines reads the input beside everything else, so that an interrupt can end the wait for it.
func readLines() (lines <-chan string, failed <-chan error) {
	read, failure := make(chan string), make(chan error, 1)
	go func() {
		scanner := bufio.NewScanner(os.Stdin)
		scanner.Buffer(nil, 1<<24)
		for scanner.Scan() {
			read <- scanner.Text()
		}
		failure <- scanner.Err()
		close(read)
	}()
	return read, failure
}
