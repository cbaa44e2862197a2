// SPDX-License-Identifier: Apache-2.0
//go:build cgo

// What the hand-written layer repeats of the generated one, and what must not be in that.

package waste_test

import (
	"os"
	"regexp"
	"testing"

	waste "github.com/libwaste/waste/bindings/go"
	"github.com/libwaste/waste/bindings/go/internal/cwaste"
)

func TestConstantsAreTheHeaders(t *testing.T) {
	pairs := []struct {
		name       string
		have, want int
	}{
		{"ErrIO", int(waste.ErrIO), cwaste.WASTE_ERR_IO},
		{"ErrFormat", int(waste.ErrFormat), cwaste.WASTE_ERR_FORMAT},
		{"ErrCorrupt", int(waste.ErrCorrupt), cwaste.WASTE_ERR_CORRUPT},
		{"ErrUnsupported", int(waste.ErrUnsupported), cwaste.WASTE_ERR_UNSUPPORTED},
		{"ErrArgument", int(waste.ErrArgument), cwaste.WASTE_ERR_ARGUMENT},
		{"ErrRAMBudget", int(waste.ErrRAMBudget), cwaste.WASTE_ERR_RAM_BUDGET},
		{"ErrNoMemory", int(waste.ErrNoMemory), cwaste.WASTE_ERR_NO_MEMORY},
		{"ErrContextFull", int(waste.ErrContextFull), cwaste.WASTE_ERR_CONTEXT_FULL},
		{"ErrBusy", int(waste.ErrBusy), cwaste.WASTE_ERR_BUSY},
		{"ErrCancelled", int(waste.ErrCancelled), cwaste.WASTE_ERR_CANCELLED},
		{"ErrVersion", int(waste.ErrVersion), cwaste.WASTE_ERR_VERSION},
		{"ErrInternal", int(waste.ErrInternal), cwaste.WASTE_ERR_INTERNAL},
		{"RoleSystem", int(waste.RoleSystem), cwaste.WASTE_ROLE_SYSTEM},
		{"RoleUser", int(waste.RoleUser), cwaste.WASTE_ROLE_USER},
		{"RoleAssistant", int(waste.RoleAssistant), cwaste.WASTE_ROLE_ASSISTANT},
		{"ChannelResponse", int(waste.ChannelResponse), cwaste.WASTE_CHANNEL_RESPONSE},
		{"ChannelThinking", int(waste.ChannelThinking), cwaste.WASTE_CHANNEL_THINKING},
		{"ChannelTool", int(waste.ChannelTool), cwaste.WASTE_CHANNEL_TOOL},
		{"FinishNone", int(waste.FinishNone), cwaste.WASTE_FINISH_NONE},
		{"FinishStop", int(waste.FinishStop), cwaste.WASTE_FINISH_STOP},
		{"FinishLength", int(waste.FinishLength), cwaste.WASTE_FINISH_LENGTH},
		{"FinishCancelled", int(waste.FinishCancelled), cwaste.WASTE_FINISH_CANCELLED},
		{"IOAuto", int(waste.IOAuto), cwaste.WASTE_IO_AUTO},
		{"IODirect", int(waste.IODirect), cwaste.WASTE_IO_DIRECT},
		{"IOBuffered", int(waste.IOBuffered), cwaste.WASTE_IO_BUFFERED},
		{"ArithmeticFast", int(waste.ArithmeticFast), cwaste.WASTE_ARITHMETIC_FAST},
		{"ArithmeticExact", int(waste.ArithmeticExact), cwaste.WASTE_ARITHMETIC_EXACT},
		{"ISABest", int(waste.ISABest), cwaste.WASTE_ISA_BEST},
		{"ISAScalar", int(waste.ISAScalar), cwaste.WASTE_ISA_SCALAR},
		{"ISAAVX2", int(waste.ISAAVX2), cwaste.WASTE_ISA_AVX2},
		{"ISAAVX512", int(waste.ISAAVX512), cwaste.WASTE_ISA_AVX512},
		{"ISANEON", int(waste.ISANEON), cwaste.WASTE_ISA_NEON},
		{"ISAAVX512VBMI", int(waste.ISAAVX512VBMI), cwaste.WASTE_ISA_AVX512_VBMI},
	}
	for _, pair := range pairs {
		if pair.have != pair.want {
			t.Errorf("%s is %d, and %d in the header", pair.name, pair.have, pair.want)
		}
	}
	if cwaste.WASTE_OK != 0 || cwaste.WASTE_RUNNING <= 0 {
		t.Error("success is something else")
	}
	// A constant that the header gains must get its pair above.
	source := generated(t, "cwaste.go")
	names := regexp.MustCompile(`(?m)^(var|const) WASTE_\w+`).FindAllString(source, -1)
	if others := 3; len(names) != len(pairs)+others { // the ABI number, OK, RUNNING
		t.Errorf("the header has %d constants, and %d are compared", len(names)-others, len(pairs))
	}
}

func generated(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("internal/cwaste/" + name)
	check(t, err)
	return string(text)
}

// SWIG is content with types that it wraps uselessly or wrongly, and panics where it fails.
func TestGeneratedLayerHasNoTraps(t *testing.T) {
	goSource, cSource := generated(t, "cwaste.go"), generated(t, "cwaste_wrap.c")
	for _, trap := range []string{`\*int\b`, `\[\]int\b`, `SWIGTYPE_p_`, `Struct_SS_`, `\bstring\b`} {
		if found := regexp.MustCompile(trap).FindString(goSource); found != "" {
			t.Errorf("cwaste.go has %q", found)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^.*_swig_gopanic\(.*$`).FindAllString(cSource, -1) {
		if !regexp.MustCompile(`^(static )?void _swig_gopanic\(`).MatchString(line) {
			t.Errorf("cwaste_wrap.c panics: %s", line)
		}
	}
	committed, err := os.ReadFile("../../capi/include/waste/waste.h")
	check(t, err)
	if string(committed) != generated(t, "waste.h") {
		t.Error("the copy of waste.h is another one: run bindings/swig/generate.sh")
	}
}
