// SPDX-License-Identifier: Apache-2.0
//
// Functional options of opening, sessions, verifying, converting and synthesizing.

package waste

// What the options of one call add up to. Zero is the library's default everywhere.
type openConfig struct {
	jobConfig
	threads     int
	budget      int64
	context     int
	io          IOMode
	verify      bool
	noLookahead bool
	arithmetic  Arithmetic
	isa         ISA
	readLanes   int
	cpuList     string
}

type convertConfig struct {
	jobConfig
	threads      int
	stages       int
	indexBits    int
	trunkBits    int
	expertBeam   int
	quantiseFrom int64
}

type synthesisConfig struct {
	jobConfig
	layers  int
	experts int
	seed    int64
}

type jobConfig struct {
	progress func(Progress)
	log      func(line string)
}

type sessionConfig struct {
	system   *string
	thinking bool
	context  int
}

// OpenOption is for Open, OpenContext and Plan.
type OpenOption interface{ openOption(*openConfig) }

// SessionOption is for Model.NewSession and Model.NewChat.
type SessionOption interface{ sessionOption(*sessionConfig) }

// VerifyOption is for Verify.
type VerifyOption interface{ verifyOption(*jobConfig) }

// ConvertOption is for Convert.
type ConvertOption interface{ convertOption(*convertConfig) }

// SynthesisOption is for Synthesize.
type SynthesisOption interface{ synthesisOption(*synthesisConfig) }

// ThreadsOption is made by WithThreads.
type ThreadsOption int

// WithThreads sets the number of the engine's threads; 0 is one for each CPU of WithCPUList, or
// without it one for each core granted to this process that is not slow.
func WithThreads(count int) ThreadsOption { return ThreadsOption(count) }

func (o ThreadsOption) openOption(c *openConfig)       { c.threads = int(o) }
func (o ThreadsOption) convertOption(c *convertConfig) { c.threads = int(o) }

// ContextOption is made by WithContext.
type ContextOption int

// WithContext sets how many positions (tokens) a session may hold: any session when given to Open
// (0: the model's maximum, at most 8192), one session when given to it (0: that of Open).
func WithContext(positions int) ContextOption { return ContextOption(positions) }

func (o ContextOption) openOption(c *openConfig)       { c.context = int(o) }
func (o ContextOption) sessionOption(c *sessionConfig) { c.context = int(o) }

// JobOption is made by WithProgress and WithLog.
type JobOption func(*jobConfig)

// WithProgress reports progress about every 20 ms, on the goroutine that waits, until the work
// ends.
func WithProgress(report func(Progress)) JobOption {
	return func(c *jobConfig) { c.progress = report }
}

// WithLog hands over what the work has to say (what was left out, what was fallen back to), line
// by line, on the goroutine that waits. Without it the lines of Open are kept for Model.LogLines,
// and those of other work are lost.
func WithLog(report func(line string)) JobOption {
	return func(c *jobConfig) { c.log = report }
}

func (o JobOption) openOption(c *openConfig)           { o.apply(&c.jobConfig) }
func (o JobOption) convertOption(c *convertConfig)     { o.apply(&c.jobConfig) }
func (o JobOption) synthesisOption(c *synthesisConfig) { o.apply(&c.jobConfig) }
func (o JobOption) verifyOption(c *jobConfig)          { o.apply(c) }

func (o JobOption) apply(c *jobConfig) {
	if o != nil {
		o(c)
	}
}

type openFunc func(*openConfig)

func (f openFunc) openOption(c *openConfig) { f(c) }

// WithRAMBudget limits the memory of the model, its sessions included; 0 is automatic, as Plan
// tells. Below the floor, Open fails with ErrRAMBudget.
func WithRAMBudget(bytes int64) OpenOption {
	return openFunc(func(c *openConfig) { c.budget = bytes })
}

// WithIO chooses how experts are read.
func WithIO(mode IOMode) OpenOption { return openFunc(func(c *openConfig) { c.io = mode }) }

// WithChecksums checks the checksum of every record that is read, not only headers.
func WithChecksums() OpenOption { return openFunc(func(c *openConfig) { c.verify = true }) }

// WithoutLookahead does not read experts that the next layer is likely to need.
func WithoutLookahead() OpenOption {
	return openFunc(func(c *openConfig) { c.noLookahead = true })
}

// WithArithmetic chooses how matrices are multiplied.
func WithArithmetic(kind Arithmetic) OpenOption {
	return openFunc(func(c *openConfig) { c.arithmetic = kind })
}

// WithISA chooses the instruction set.
func WithISA(isa ISA) OpenOption { return openFunc(func(c *openConfig) { c.isa = isa }) }

// WithReadLanes sets how many experts are read at once, at most 32; 0 is 2, 4 or 8, as measured
// when the model is opened.
func WithReadLanes(count int) OpenOption {
	return openFunc(func(c *openConfig) { c.readLanes = count })
}

// WithCPUList sets the CPUs to compute on, as in "0-3,8"; Linux only. A thread that waits for
// tokens is one of those that compute, and is put back where it was after each step. "" is where
// the system puts them, but on no slow CPU unless WithThreads says how many there are.
func WithCPUList(cpus string) OpenOption {
	return openFunc(func(c *openConfig) { c.cpuList = cpus })
}

type sessionFunc func(*sessionConfig)

func (f sessionFunc) sessionOption(c *sessionConfig) { f(c) }

// System begins the conversation with a system message.
func System(text string) SessionOption {
	return sessionFunc(func(c *sessionConfig) { c.system = &text })
}

// Thinking lets the model think before it answers, where it can.
func Thinking() SessionOption {
	return sessionFunc(func(c *sessionConfig) { c.thinking = true })
}

type convertFunc func(*convertConfig)

func (f convertFunc) convertOption(c *convertConfig) { f(c) }

// WithStages sets the number of codebooks in a row for experts: 2, 3, 4 or 6; 0 is 3.
func WithStages(count int) ConvertOption {
	return convertFunc(func(c *convertConfig) { c.stages = count })
}

// WithIndexBits sets the bits of an index into a codebook: 8, or 6 for four stages of 64 entries;
// 0 is 8.
func WithIndexBits(bits int) ConvertOption {
	return convertFunc(func(c *convertConfig) { c.indexBits = bits })
}

// WithTrunkBits sets the bits of a weight of trunk matrices: 3, 4 or 8; 0 is 4. Embedding and head
// have 8.
func WithTrunkBits(bits int) ConvertOption {
	return convertFunc(func(c *convertConfig) { c.trunkBits = bits })
}

// WithExpertBeam sets the search width of the expert encoder: 1 is greedy, 0 is 16.
func WithExpertBeam(width int) ConvertOption {
	return convertFunc(func(c *convertConfig) { c.expertBeam = width })
}

// WithQuantiseFrom keeps trunk tensors of fewer elements in f32; 0 is 65536.
func WithQuantiseFrom(elements int64) ConvertOption {
	return convertFunc(func(c *convertConfig) { c.quantiseFrom = elements })
}

type synthesisFunc func(*synthesisConfig)

func (f synthesisFunc) synthesisOption(c *synthesisConfig) { f(c) }

// WithLayers writes the first count layers only, at true width; 0 is all.
func WithLayers(count int) SynthesisOption {
	return synthesisFunc(func(c *synthesisConfig) { c.layers = count })
}

// WithExperts writes count experts of each layer only; 0 is all.
func WithExperts(count int) SynthesisOption {
	return synthesisFunc(func(c *synthesisConfig) { c.experts = count })
}

// WithSeed chooses the random weights: the same seed gives the same bytes. 0, the default, is a
// seed like any other.
func WithSeed(value int64) SynthesisOption {
	return synthesisFunc(func(c *synthesisConfig) { c.seed = value })
}
