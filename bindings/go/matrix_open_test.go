// SPDX-License-Identifier: Apache-2.0
//
// Rows 1 to 4, 15 and 16 of the behaviour matrix: opening, and finding the native library.

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

	waste "github.com/libwaste/waste/bindings/go"
)

// replace writes a file of a container again, with the first old as new; cut to size if >= 0.
func replace(t *testing.T, path, old, new string, size int) {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	text := strings.Replace(string(data), old, new, 1)
	if old != new && text == string(data) {
		t.Fatalf("%s has no %q", path, old)
	}
	if size >= 0 {
		text = text[:size]
	}
	check(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestRow01OpenMissingTruncatedWrongMagicWrongVersion(t *testing.T) {
	const version = "\"format_version\": 0"
	cases := []struct {
		name string
		want waste.Status
		harm func(folder string)
	}{
		{"missing", waste.ErrIO, func(folder string) { check(t, os.RemoveAll(folder)) }},
		{"no_container", waste.ErrIO, func(folder string) {
			check(t, os.Remove(filepath.Join(folder, "manifest.json")))
		}},
		{"manifest_cut", waste.ErrFormat, func(folder string) {
			replace(t, filepath.Join(folder, "manifest.json"), "", "", 100)
		}},
		{"trunk_cut", waste.ErrCorrupt, func(folder string) {
			replace(t, filepath.Join(folder, "trunk.bin"), "", "", 1000)
		}},
		{"bank_cut", waste.ErrCorrupt, func(folder string) {
			replace(t, filepath.Join(folder, "experts-L2.bin"), "", "", 4096)
		}},
		{"wrong_magic", waste.ErrFormat, func(folder string) {
			replace(t, filepath.Join(folder, "experts-L1.bin"), "WEXP", "XEXP", -1)
		}},
		{"wrong_version", waste.ErrVersion, func(folder string) {
			replace(t, filepath.Join(folder, "manifest.json"), version,
				"\"format_version\": 99", -1)
		}},
	}
	for _, c := range cases {
		c := c
		t.Run(c.name, func(t *testing.T) {
			folder := copyMini(t, "bad.waste")
			c.harm(folder)
			_, err := waste.Open(folder)
			if c.name == "wrong_magic" { // records are read when they are used
				check(t, err)
				_, err = newSession(t, open(t, folder)).Ask(background, capital)
			} else {
				_, planned := waste.Plan(folder)
				wantError(t, planned, c.want)
			}
			wantError(t, err, c.want)
			if !strings.Contains(err.Error(), folder) {
				t.Fatalf("%q does not name %s", err, folder)
			}
			wantError(t, waste.Verify(background, folder), c.want)
		})
	}
	openMini(t) // the process lives
}

func TestRow02BudgetTooSmall(t *testing.T) {
	plan, err := waste.Plan(miniModel, waste.WithContext(512), waste.WithRAMBudget(1<<20))
	check(t, err)
	if plan.Fits || plan.Floor <= 1<<20 || plan.Budget != 1<<20 {
		t.Fatalf("%+v", plan)
	}
	_, err = waste.Open(miniModel, waste.WithContext(512), waste.WithRAMBudget(1<<20))
	wantError(t, err, waste.ErrRAMBudget)
	var failure *waste.Error
	if !errors.As(err, &failure) || failure.Needed != plan.Floor {
		t.Fatalf("needed is not %d: %+v", plan.Floor, failure)
	}
	model := open(t, miniModel, waste.WithContext(512), waste.WithRAMBudget(failure.Needed))
	wantText(t, newSession(t, model), capital, rome)
	_, err = model.NewSession() // the budget is for one
	wantError(t, err, waste.ErrRAMBudget)
	chat := model.NewChat()
	if _, err = chat.Ask(background, capital); !errors.Is(err, waste.ErrRAMBudget) {
		t.Fatalf("a chat that could not be made says %v", err)
	}
	check(t, chat.Close())
}

func TestRow03OpenCancelledMidway(t *testing.T) {
	path := script(t, `{"open_stall_ms": 60000, "answers": [["x"]]}`)
	for i := 0; i < 3; i++ {
		ctx, cancel := context.WithCancel(background)
		calls := 0
		within(t, cancelBound, "a cancelled open", func() {
			_, err := waste.OpenContext(ctx, path, waste.WithProgress(func(waste.Progress) {
				if calls++; calls == 2 {
					cancel()
				}
			}))
			wantError(t, err, waste.ErrCancelled, context.Canceled)
		})
		if calls < 2 {
			t.Fatalf("progress was told %d times", calls)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := waste.OpenContext(ctx, miniModel)
	wantError(t, err, waste.ErrCancelled, context.Canceled)
}

func TestRow04OddPaths(t *testing.T) {
	folder := copyMini(t, "model with spaces, 🐝 и кириллица")
	model := open(t, folder)
	session := newSession(t, model)
	wantText(t, session, capital, rome)
	saved := filepath.Join(t.TempDir(), "беседа 🐝.session")
	check(t, session.Save(saved))
	check(t, newSession(t, model).Load(saved))
	_, err := waste.Open("a\x00b")
	wantError(t, err, waste.ErrArgument)
}

// fakeLibrary compiles a libwaste that has all the functions, does nothing, and says that it is of
// ABI number version.
func fakeLibrary(t *testing.T, version int) (folder string) {
	t.Helper()
	names, err := os.ReadFile("../../capi/exports.txt")
	check(t, err)
	var source strings.Builder
	for _, name := range strings.Fields(string(names)) {
		value := 0
		if name == "waste_abi_version" {
			value = version
		}
		fmt.Fprintf(&source, "long long %s(void) { return %d; }\n", name, value)
	}
	folder = t.TempDir()
	file := filepath.Join(folder, "fake.c")
	check(t, os.WriteFile(file, []byte(source.String()), 0o600))
	output, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,-soname,libwaste.so.0",
		"-Wl,--version-script=../../capi/waste.map", "-o", filepath.Join(folder, "libwaste.so.0"),
		file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return folder
}

func init() {
	children["open"] = func(arguments []string) int {
		_, err := waste.Open(arguments[0])
		fmt.Println(err)
		_, planErr := waste.Plan(arguments[0])
		verifyErr := waste.Verify(background, arguments[0])
		if errors.Is(err, waste.ErrABI) && errors.Is(planErr, waste.ErrABI) &&
			errors.Is(verifyErr, waste.ErrABI) && waste.Version() == "" {
			return 3
		}
		return 0
	}
}

func TestRow15AbiMismatch(t *testing.T) {
	for version, want := range map[int]string{
		99: "its ABI number is 99, and 0 is needed",
		0:  "its structs have other sizes",
	} {
		folder := fakeLibrary(t, version)
		command := childCommand(t, "open", []string{"LD_LIBRARY_PATH=" + folder}, miniModel)
		output, err := command.CombinedOutput()
		checkExit(t, command, err, string(output), 3)
		if !strings.Contains(string(output), want) {
			t.Fatalf("%q does not say %q", output, want)
		}
	}
}

// A dynamic program without its library never gets as far as Go: the loader of the system says
// which library it lacks.
func TestRow16NativeLibraryMissing(t *testing.T) {
	command := childCommand(t, "open", []string{"LD_LIBRARY_PATH=" + t.TempDir()}, miniModel)
	output, err := command.CombinedOutput()
	checkExit(t, command, err, string(output), 127)
	if !strings.Contains(string(output), "libwaste.so.0: cannot open shared object file") {
		t.Fatalf("%q does not name the library", output)
	}
}
