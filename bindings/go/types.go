// SPDX-License-Identifier: Apache-2.0
//
// The plain values that go in and out: enumerations, and structs that are copies of the C ones.

package waste

import (
	"fmt"
	"time"
)

// Role says who speaks a message.
type Role int32

// The roles of messages.
const (
	RoleSystem    Role = 0
	RoleUser      Role = 1
	RoleAssistant Role = 2
)

// Channel says what a piece of text is.
type Channel int32

// The channels of an answer.
const (
	ChannelResponse Channel = 0 // the answer itself
	ChannelThinking Channel = 1 // what the model thinks before it answers
	ChannelTool     Channel = 2 // a tool call
)

// FinishReason says why an answer ended.
type FinishReason int32

// The reasons for an end.
const (
	FinishNone      FinishReason = 0 // it has not, or an error ended it
	FinishStop      FinishReason = 1 // the model ended its turn, or a stop string or token came
	FinishLength    FinishReason = 2 // MaxTokens or the session's context was reached
	FinishCancelled FinishReason = 3 // the context was done, or the stream was closed
)

// String is "none", "stop", "length" or "cancelled".
func (r FinishReason) String() string {
	names := [...]string{"none", "stop", "length", "cancelled"}
	if r >= 0 && int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("finish reason %d", int32(r))
}

// IOMode says how experts are read from the drive.
type IOMode int32

// The ways to read.
const (
	IOAuto     IOMode = 0 // direct where the drive allows it
	IODirect   IOMode = 1
	IOBuffered IOMode = 2 // through the page cache
)

// Arithmetic says how matrices are multiplied.
type Arithmetic int32

// The kinds of arithmetic.
const (
	ArithmeticFast  Arithmetic = 0 // in this version the same as exact
	ArithmeticExact Arithmetic = 1 // f32 over dequantised weights
)

// ISA is an instruction set.
type ISA int32

// The instruction sets. Asking for one that the machine lacks gets ErrUnsupported.
const (
	ISABest       ISA = 0
	ISAScalar     ISA = 1
	ISAAVX2       ISA = 2
	ISAAVX512     ISA = 3
	ISANEON       ISA = 4
	ISAAVX512VBMI ISA = 5 // AVX-512 with VBMI and VNNI
)

// Progress tells how far long work is, in tensors for converting and in bytes for all other.
type Progress struct {
	Done  int64
	Total int64 // 0 until known
}

// MemoryPlan is what opening a model would cost, all in bytes. Floor is the sum of Trunk, State,
// Scratch and Staging; Budget that of Floor and Cache.
type MemoryPlan struct {
	Fits        bool  // whether Budget is at least Floor
	Floor       int64 // the smallest budget that opens this model with one session
	Recommended int64 // Floor and two working sets of experts
	Trunk       int64 // shared weights and codebooks
	State       int64 // one session of the context asked for
	Scratch     int64 // activations of a step, logits
	Staging     int64 // the experts that one step of one layer needs, and those read ahead
	Cache       int64 // experts kept beyond that
	Usable      int64 // RAM that this process may use: cgroup limits and Reserved counted
	Budget      int64 // asked for, or automatic
	Reserved    int64 // granted to other open models on this machine, and not used yet
}

// Info describes an open model.
type Info struct {
	Name            string // of the architecture, such as "kimi-k3"
	VocabSize       int
	LayerCount      int
	HiddenSize      int
	ExpertCount     int // a layer
	ExpertsPerToken int
	Context         int   // positions of a session unless it asks for fewer
	ExpertBytes     int64 // one expert on disk
	ContainerBytes  int64 // all files of the model that are read
	BudgetBytes     int64
	CacheSlots      int64 // experts that fit the memory granted
	Threads         int
	ISA             ISA  // in use
	DirectIO        bool // direct reads were obtained, as probed by one real read
	Thinking        bool // the model's chat format has a thinking channel
	EOSToken        int32
	HasChat         bool  // the container holds a chat format
	TokenTrunkBytes int64 // of weights that every token reads from memory
	TokenFlops      int64 // of a token's matrices, its experts included: 2 a weight
	ReadLanes       int   // experts read at once; 0 without experts on disk
}

// Stats are counters since the object was made. Those of a session and of a stream count their own
// work, and fields that do not apply are 0.
type Stats struct {
	FinishReason    FinishReason // stream
	Position        int          // session, stream: tokens that the session holds
	Context         int          // session, stream: most that it can hold
	PromptTokens    int64        // rows that were prefilled
	GeneratedTokens int64
	Prefill         time.Duration
	Decode          time.Duration
	ExpertsHit      int64         // expert uses served from memory
	ExpertsMissed   int64         // those read from disk
	BytesRead       int64         // of experts, those read ahead included
	ReadTime        time.Duration // spent waiting for those reads
	MemoryBytes     int64         // model: charged to the budget now; session: its own share
	PeakRSSBytes    int64         // model: of the whole process, as the system tells

	ExpertsForeseen  int64 // of those missed, the ones whose read lookahead had begun, or ended
	SpeculativeReads int64 // reads of lookahead that ended, needed in the end or not
	SpeculativeBytes int64 // of those; part of BytesRead
	ReadStalls       int64 // times that a step had nothing to do but wait for a read
}

// Piece is text that a stream hands out: whole characters of one channel.
type Piece struct {
	Text       string
	Channel    Channel
	Token      int32   // the last token that this piece consumed
	FirstIndex int     // index in the answer of the first token that it consumed
	Count      int     // tokens consumed: several for an emoji, none for the rest of a long text
	Logprob    float64 // of Token, natural logarithm, before penalties; 0 without Logprobs
	Position   int     // of the session after this piece
}

// Usage is what an answer cost.
type Usage struct {
	PromptTokens    int64
	GeneratedTokens int64
	Prefill         time.Duration // for the prompt
	Decode          time.Duration // for the tokens of the answer
}

// Result is what a stream handed out in all.
type Result struct {
	Text         string    // the response
	Thinking     string    // what was thought before it
	Tokens       []int32   // of the whole answer, those included whose text was not handed out
	Logprobs     []float64 // one a token with Logprobs, else nil
	FinishReason FinishReason
	Usage        Usage
}
