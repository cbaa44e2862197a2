// SPDX-License-Identifier: Apache-2.0
//
// Rows 11, 13, 14 and 17 of the behaviour matrix: lifetimes, processes, threads.

package waste_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	waste "github.com/libwaste/waste/bindings/go"
)

func TestRow11FreeInAnyOrder(t *testing.T) {
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for _, read := range []bool{false, true} {
		for _, order := range orders {
			model := openEndless(t)
			session := newSession(t, model)
			stream := session.Stream(background, "x")
			if read && !stream.Next() {
				t.Fatal(stream.Err())
			}
			closers := []func() error{model.Close, session.Close, stream.Close}
			for _, i := range order {
				check(t, closers[i]())
				check(t, closers[i]())
			}
			_, err := model.Info()
			wantError(t, err, waste.ErrClosed)
			_, err = session.Tokens()
			wantError(t, err, waste.ErrClosed)
		}
	}
}

// Nothing is closed, and the collector runs all the time.
func TestRow11GcPressure(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	path := script(t, `{"answers": [["one", " ", "two", {"repeat": "!"}]]}`)
	var group sync.WaitGroup
	for worker := 0; worker < 3; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 30; i++ {
				text, err := leaveOpen(path, i%2 == 0)
				if err != nil || text != "one two" {
					t.Errorf("%q, %v", text, err)
				}
			}
		}()
	}
	group.Wait()
	close(stop)
	<-stopped
}

// leaveOpen reads three pieces; of the model it keeps nothing, or nothing but the stream.
func leaveOpen(path string, onlyStream bool) (string, error) {
	model, err := waste.Open(path)
	if err != nil {
		return "", err
	}
	session, err := model.NewSession()
	if err != nil {
		return "", err
	}
	stream := session.Stream(background, "x", waste.Temperature(0.5))
	if onlyStream {
		model, session = nil, nil
	}
	text := ""
	for i := 0; i < 3 && stream.Next(); i++ {
		text += stream.Piece().Text
	}
	return text, stream.Err()
}

func init() {
	children["continue"] = continueSession
	children["interrupted"] = interrupted
	children["exit"] = exitDuringGenerate
}

// continueSession loads a session that another process saved, and prints the tokens of an answer.
func continueSession(arguments []string) int {
	model, err := waste.Open(miniModel, waste.WithContext(512))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	session := model.NewChat()
	if err := session.Load(arguments[0]); err != nil {
		fmt.Println(err)
		return 1
	}
	answer, err := session.Ask(background, story, waste.Temperature(0.9), waste.Seed(11))
	fmt.Println(answer.Tokens, err)
	return 0
}

func TestRow13SaveNewProcessLoadContinue(t *testing.T) {
	session := newSession(t, openMini(t))
	wantText(t, session, capital, rome)
	saved := filepath.Join(t.TempDir(), "saved")
	check(t, session.Save(saved))
	answer, err := session.Ask(background, story, waste.Temperature(0.9), waste.Seed(11))
	check(t, err)
	if len(answer.Tokens) < 10 {
		t.Fatalf("%+v", answer)
	}
	command := childCommand(t, "continue", nil, saved)
	output, err := command.CombinedOutput()
	checkExit(t, command, err, string(output), 0)
	if want := fmt.Sprintln(answer.Tokens, error(nil)); string(output) != want {
		t.Fatalf("%q, not %q", output, want)
	}
	check(t, os.WriteFile(saved, []byte("no session"), 0o600))
	before := heldText(t, openMini(t), session)
	wantError(t, session.Load(saved), waste.ErrFormat)
	if after := heldText(t, openMini(t), session); after != before {
		t.Fatal("a load that failed changed the session")
	}
}

// exitDuringGenerate leaves while another thread is inside of the engine.
func exitDuringGenerate(arguments []string) int {
	model, err := waste.Open(arguments[0])
	if err != nil {
		return 1
	}
	inside := make(chan struct{})
	go func() {
		stream := model.NewChat().Stream(background, "x")
		stream.Next()
		close(inside)
		for stream.Next() {
		}
	}()
	<-inside
	return 7
}

func TestRow14ExitDuringGenerate(t *testing.T) {
	for _, path := range []string{script(t, endlessModel), miniModel,
		script(t, `{"answers": [["x", {"stall_ms": 60000}, "y"]]}`)} {
		command := childCommand(t, "exit", nil, path)
		output, err := command.CombinedOutput()
		checkExit(t, command, err, string(output), 7)
	}
}

// interrupted answers without end, and returns 0 if an interrupt ended the answer and nothing else.
func interrupted(arguments []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	model, err := waste.Open(arguments[0], waste.WithContext(1000000))
	if err != nil {
		return 1
	}
	defer model.Close()
	session := model.NewChat()
	stream := session.Stream(ctx, "x")
	stream.Next()
	fmt.Println("ready")
	for stream.Next() {
	}
	fmt.Println(stream.Result().FinishReason, stream.Err())
	if session.Reset() != nil {
		return 1
	}
	return 0
}

func TestRow17TwoModelsFourSessionsFourThreads(t *testing.T) {
	models := []*waste.Model{openMini(t), openMini(t)}
	questions := map[string]string{
		capital:                          rome,
		"What is the capital of Japan?":  "The capital of Japan is Tokyo.",
		"What is the capital of Spain?":  "The capital of Spain is Madrid.",
		"What is the capital of France?": "The capital of France is Paris.",
	}
	var group sync.WaitGroup
	n := 0
	for question, want := range questions {
		question, want, model := question, want, models[n%2]
		n++
		group.Add(1)
		go func() {
			defer group.Done()
			session, err := model.NewSession()
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			for i := 0; i < 10; i++ {
				answer, err := session.Ask(background, question)
				if err != nil || answer.Text != want {
					t.Errorf("%q, %v", answer.Text, err)
				}
				if err := session.Reset(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
}
