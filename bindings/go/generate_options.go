// SPDX-License-Identifier: Apache-2.0
//
// Functional options of an answer.

package waste

// What the options of one answer add up to. Zero is the library's default everywhere.
type generateConfig struct {
	maxTokens        int
	temperature      float64
	topP             float64
	minP             float64
	repeatPenalty    float64
	presencePenalty  float64
	frequencyPenalty float64
	seed             int64
	topK             int
	penaltyWindow    int
	logprobs         bool
	raw              bool
	markupOut        bool
	stops            []string
	stopTokens       []int32
	biases           []bias
}

type bias struct {
	token  int32
	amount float64
}

// GenerateOption is for Ask, Stream, Continue, All and Reader.
type GenerateOption func(*generateConfig)

// MaxTokens ends the answer after count tokens; 0 is when the turn ends or the context is full.
func MaxTokens(count int) GenerateOption {
	return func(c *generateConfig) { c.maxTokens = count }
}

// Temperature of sampling; 0, the default, is greedy: the likeliest token each time.
func Temperature(value float64) GenerateOption {
	return func(c *generateConfig) { c.temperature = value }
}

// TopK keeps the count likeliest tokens; 0 is all.
func TopK(count int) GenerateOption { return func(c *generateConfig) { c.topK = count } }

// TopP keeps the smallest set of tokens of this probability; 0 is 1, all.
func TopP(probability float64) GenerateOption {
	return func(c *generateConfig) { c.topP = probability }
}

// MinP drops tokens below this share of the likeliest one's probability.
func MinP(share float64) GenerateOption { return func(c *generateConfig) { c.minP = share } }

// RepeatPenalty divides (or multiplies, if negative) the logits of recent tokens; 0 is 1, none.
func RepeatPenalty(factor float64) GenerateOption {
	return func(c *generateConfig) { c.repeatPenalty = factor }
}

// PresencePenalty is subtracted once from the logit of a token that occurred recently.
func PresencePenalty(amount float64) GenerateOption {
	return func(c *generateConfig) { c.presencePenalty = amount }
}

// FrequencyPenalty is subtracted from a token's logit for each recent occurrence.
func FrequencyPenalty(amount float64) GenerateOption {
	return func(c *generateConfig) { c.frequencyPenalty = amount }
}

// PenaltyWindow sets how many tokens count as recent; 0 is 64.
func PenaltyWindow(tokens int) GenerateOption {
	return func(c *generateConfig) { c.penaltyWindow = tokens }
}

// Seed of sampling: the same seed gives the same text. 0, the default, is a seed like any other.
func Seed(value int64) GenerateOption { return func(c *generateConfig) { c.seed = value } }

// Logprobs keeps the log-probabilities of the answer's tokens.
func Logprobs() GenerateOption { return func(c *generateConfig) { c.logprobs = true } }

// Raw takes the prompt as plain text to continue, not as a user's message.
func Raw() GenerateOption { return func(c *generateConfig) { c.raw = true } }

// MarkupOut hands out special tokens as their text too.
func MarkupOut() GenerateOption { return func(c *generateConfig) { c.markupOut = true } }

// Stop ends the answer where one of the texts comes; it is not part of the answer.
func Stop(texts ...string) GenerateOption {
	return func(c *generateConfig) { c.stops = append(c.stops, texts...) }
}

// StopTokens ends the answer where one of the tokens comes; it is not part of the answer's text.
func StopTokens(tokens ...int32) GenerateOption {
	return func(c *generateConfig) { c.stopTokens = append(c.stopTokens, tokens...) }
}

// LogitBias adds amount to the logit of a token; math.Inf(-1) forbids it.
func LogitBias(token int32, amount float64) GenerateOption {
	return func(c *generateConfig) { c.biases = append(c.biases, bias{token, amount}) }
}
