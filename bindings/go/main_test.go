// SPDX-License-Identifier: Apache-2.0
//
// What the tests share: where things are, models and scripts, and this program started again as
// another process that does one thing (a "child").

package waste_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	waste "github.com/libwaste/waste/bindings/go"
)

const (
	miniModel    = "../../examples/mini/mini.waste"
	conformance  = "../conformance"
	capital      = "What is the capital of Italy?"
	rome         = "The capital of Italy is Rome."
	story        = "Tell me a story about a fox."
	childVar     = "WASTE_TEST_CHILD"
	cancelBound  = time.Second // how soon a cancel must take effect
	hangBound    = 60 * time.Second
	endlessModel = `{"context": 1000000, "answers": [[{"repeat": "ha"}]]}` // some seconds
)

var background = context.Background()

// children are what this program does when it is started as another process; the exit code.
var children = map[string]func(arguments []string) int{}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		os.Exit(children[name](os.Args[1:]))
	}
	os.Exit(m.Run())
}

// childCommand is this program as the child of that name. What is in env comes last, and wins.
func childCommand(t *testing.T, name string, env []string, arguments ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, hangBound)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, os.Args[0], arguments...)
	command.Env = append(append(os.Environ(), childVar+"="+name), env...)
	return command
}

// exitCode of a process that has ended, and what it wrote to stderr is shown if it is not wanted.
func checkExit(t *testing.T, command *exec.Cmd, err error, output string, want int) {
	t.Helper()
	if have := command.ProcessState.ExitCode(); have != want {
		t.Fatalf("exit code %d (%v), not %d\n%s", have, err, want, output)
	}
}

// script writes a scripted model and returns its path for Open.
func script(t *testing.T, json string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	check(t, os.WriteFile(path, []byte(json), 0o600))
	return "test:" + path
}

func open(t *testing.T, path string, options ...waste.OpenOption) *waste.Model {
	t.Helper()
	model, err := waste.Open(path, options...)
	check(t, err)
	t.Cleanup(func() { model.Close() })
	return model
}

func openMini(t *testing.T) *waste.Model {
	t.Helper()
	return open(t, miniModel, waste.WithContext(512))
}

// openEndless opens a model whose answers outlast any cancel.
func openEndless(t *testing.T) *waste.Model {
	t.Helper()
	return open(t, script(t, endlessModel), waste.WithContext(1000000))
}

func newSession(t *testing.T, model *waste.Model, options ...waste.SessionOption) *waste.Session {
	t.Helper()
	session, err := model.NewSession(options...)
	check(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, wanted ...error) {
	t.Helper()
	for _, want := range wanted {
		if !errors.Is(err, want) {
			t.Fatalf("the error is %v, not %v", err, want)
		}
	}
}

// wantText asks the session and compares.
func wantText(t *testing.T, session *waste.Session, prompt, want string) {
	t.Helper()
	answer, err := session.Ask(background, prompt)
	check(t, err)
	if answer.Text != want {
		t.Fatalf("the answer is %q, not %q", answer.Text, want)
	}
}

// heldText is all that the session holds, markup included.
func heldText(t *testing.T, model *waste.Model, session *waste.Session) string {
	t.Helper()
	tokens, err := session.Tokens()
	check(t, err)
	text, err := model.Detokenize(tokens)
	check(t, err)
	return text
}

// within fails if f takes longer than a cancel may.
func within(t *testing.T, bound time.Duration, what string, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > bound {
		t.Fatalf("%s took %v", what, took)
	}
}

// eventually waits until done, for as long as a test may hang.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(hangBound); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this never happened: " + what)
		}
	}
}

// statusFile reads a number of /proc/self/status, such as "VmRSS" in KiB or "Threads".
func statusFile(t *testing.T, key string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc on this system: ", err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		var value int64
		if strings.HasPrefix(line, key+":") {
			_, err := fmt.Sscan(line[len(key)+1:], &value)
			check(t, err)
			return value
		}
	}
	t.Fatal("no " + key)
	return 0
}

// copyMini copies the small model into a new folder of that name.
func copyMini(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	check(t, os.Mkdir(folder, 0o700))
	entries, err := os.ReadDir(miniModel)
	check(t, err)
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(miniModel, entry.Name()))
		check(t, err)
		check(t, os.WriteFile(filepath.Join(folder, entry.Name()), data, 0o600))
	}
	return folder
}
