// SPDX-License-Identifier: Apache-2.0
//go:build waste_package

// What is around the package: its form, programs of users who have it from package.sh, and the
// example. test.sh sets the tag, and says where things are.

package waste_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"go/format"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const example = "../../examples/go-chat"

// fromScript is a setting of test.sh.
func fromScript(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatal("test.sh sets " + name)
	}
	return value
}

// goTool runs Go in a folder, with settings that come last; LD_LIBRARY_PATH is not set.
func goTool(t *testing.T, folder string, env []string, arguments ...string) {
	t.Helper()
	command := exec.Command(fromScript(t, "WASTE_TEST_GO"), arguments...)
	command.Dir = folder
	command.Env = append(userEnv(), env...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// userEnv is the environment of somebody who has set nothing up for libwaste.
func userEnv() []string {
	var env []string
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "LD_") && !strings.HasPrefix(setting, "CGO_LDFLAGS=") {
			env = append(env, setting)
		}
	}
	return env
}

func TestVet(t *testing.T) {
	link := []string{"CGO_LDFLAGS=-L" + fromScript(t, "WASTE_TEST_NATIVE")}
	goTool(t, ".", link, "vet", "-tags", "waste_package", "./...")
	goTool(t, example, link, "vet", "./...")
	goTool(t, ".", []string{"CGO_ENABLED=0"}, "vet", ".")
}

func TestFormat(t *testing.T) {
	files := []string{}
	for _, pattern := range []string{"*.go", "internal/cwaste/link.go", example + "/*.go"} {
		found, err := filepath.Glob(pattern)
		check(t, err)
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(t, err)
		formatted, err := format.Source(text)
		check(t, err)
		if !bytes.Equal(text, formatted) {
			t.Errorf("%s is not as gofmt writes it", file)
		}
	}
	if len(files) < 20 {
		t.Fatalf("only %d files", len(files))
	}
}

// userModule is a new folder with the program of docs/go.md and a go.mod that takes the package
// from where package.sh put it.
func userModule(t *testing.T) string {
	t.Helper()
	pkg := fromScript(t, "WASTE_TEST_PACKAGE")
	page, err := os.ReadFile("../../docs/go.md")
	check(t, err)
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(page)
	if program == nil {
		t.Fatal("docs/go.md has no program")
	}
	folder := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "main.go"), program[1], 0o600))
	check(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(`module example.com/user

go 1.19

require github.com/libwaste/waste/bindings/go v0.0.0

replace github.com/libwaste/waste/bindings/go => `+pkg+"\n"), 0o600))
	return folder
}

// runUser runs a program beside the model, and returns what it says and its exit code.
func runUser(t *testing.T, program string, env ...string) (string, int) {
	t.Helper()
	command := exec.Command(program)
	command.Dir = "../../examples/mini"
	command.Env = append(userEnv(), env...)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(output), command.ProcessState.ExitCode()
}

// needsLibwaste reports whether the loader would look for libwaste.so.
func needsLibwaste(t *testing.T, program string) bool {
	t.Helper()
	file, err := elf.Open(program)
	check(t, err)
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	check(t, err)
	for _, library := range libraries {
		if strings.HasPrefix(library, "libwaste") {
			return true
		}
	}
	return false
}

func TestPackageDynamic(t *testing.T) {
	folder, native := userModule(t), fromScript(t, "WASTE_TEST_NATIVE")
	program := filepath.Join(folder, "user")
	goTool(t, folder, []string{"CGO_LDFLAGS=-L" + native}, "build", "-o", program)
	if !needsLibwaste(t, program) {
		t.Fatal("the program is not linked to libwaste.so")
	}
	output, code := runUser(t, program, "LD_LIBRARY_PATH="+native)
	if output != rome+"\n" || code != 0 {
		t.Fatalf("exit code %d: %q", code, output)
	}
	output, code = runUser(t, program)
	if !strings.Contains(output, "libwaste.so.0") || code != 127 {
		t.Fatalf("without the library: exit code %d: %q", code, output)
	}
}

func TestPackageStatic(t *testing.T) {
	folder := userModule(t)
	program := filepath.Join(folder, "user")
	goTool(t, folder, nil, "build", "-tags", "waste_static", "-o", program)
	if needsLibwaste(t, program) {
		t.Fatal("the program is linked to libwaste.so")
	}
	output, code := runUser(t, program)
	if output != rome+"\n" || code != 0 {
		t.Fatalf("exit code %d: %q", code, output)
	}
}

func TestPackageWithoutCgo(t *testing.T) {
	folder := userModule(t)
	program := filepath.Join(folder, "user")
	goTool(t, folder, []string{"CGO_ENABLED=0"}, "build", "-o", program)
	output, code := runUser(t, program)
	if !strings.Contains(output, "built without cgo, which this package needs") || code != 1 {
		t.Fatalf("exit code %d: %q", code, output)
	}
}

// chat builds the example and starts it.
func chat(t *testing.T, model string) (*exec.Cmd, io.WriteCloser, io.Reader) {
	t.Helper()
	native := fromScript(t, "WASTE_TEST_NATIVE")
	program := filepath.Join(t.TempDir(), "go-chat")
	goTool(t, example, []string{"CGO_LDFLAGS=-L" + native}, "build", "-o", program)
	command := exec.Command(program, model)
	command.Env = append(userEnv(), "LD_LIBRARY_PATH="+native)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	check(t, err)
	output, err := command.StdoutPipe()
	check(t, err)
	check(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command, input, output
}

func TestExampleChat(t *testing.T) {
	command, input, output := chat(t, miniModel)
	_, err := io.WriteString(input, capital+"\n\nWhat is the capital of Japan?\n")
	check(t, err)
	check(t, input.Close())
	said, err := io.ReadAll(output)
	check(t, err)
	check(t, command.Wait())
	if want := "> " + rome + "\n> > The capital of Japan is Tokyo.\n> \n"; string(said) != want {
		t.Fatalf("%q, not %q", said, want)
	}
}

func TestExampleChatInterrupted(t *testing.T) {
	command, input, output := chat(t, script(t, endlessModel))
	_, err := io.WriteString(input, "x\n")
	check(t, err)
	_, err = io.ReadFull(output, make([]byte, len("> hahaha")))
	check(t, err)
	check(t, command.Process.Signal(os.Interrupt))
	said := readUntil(t, output, "[cancelled]\n> ")
	check(t, command.Process.Signal(os.Interrupt)) // at the prompt: quits
	rest, err := io.ReadAll(output)
	check(t, err)
	check(t, command.Wait())
	if string(rest) != "\n" {
		t.Fatalf("%q after %q", rest, said)
	}
}

func readUntil(t *testing.T, input io.Reader, end string) string {
	t.Helper()
	said, one := "", make([]byte, 1)
	for !strings.HasSuffix(said, end) {
		_, err := io.ReadFull(input, one)
		check(t, err)
		said += string(one)
	}
	return said
}
