// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of bindings/conformance: every case byte for byte, the same in each
// language.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using NUnit.Framework;

namespace Waste.Tests
{
    [TestFixture]
    public class ConformanceTests
    {
        private static readonly Lazy<WasteModel> Mini = new Lazy<WasteModel>(
            () => WasteModel.Open(Places.Mini, Context(Suite("mini"))));

        public static IEnumerable<TestCaseData> Cases()
        {
            return Cases("mini").Concat(Cases("scripted"));
        }

        public static IEnumerable<TestCaseData> Texts()
        {
            return List(Suite("mini"), "tokenize").Select(
                (text, index) => new TestCaseData(text).SetName("tokenize_" + index));
        }

        [TestCaseSource("Cases")]
        public void Case(ModelOptions context, Dictionary<string, object> theCase)
        {
            WasteModel own = null;
            if (theCase.ContainsKey("script"))
                own = WasteModel.Open(Places.Script((string)theCase["script"]), context);
            using (own)
            using (ChatSession chat = (own ?? Mini.Value).CreateChat(new SessionOptions
            {
                System = Get(theCase, "system") as string,
                Thinking = true.Equals(Get(theCase, "thinking")),
            }))
                foreach (Dictionary<string, object> turn in List(theCase, "turns"))
                    RunTurn(chat, turn);
        }

        [TestCaseSource("Texts")]
        public void Tokenizes(Dictionary<string, object> text)
        {
            using (WasteModel model = WasteModel.Open(Places.Mini))
            {
                var written = (string)text["text"];
                int[] tokens = true.Equals(Get(text, "markup"))
                    ? model.Tokenizer.EncodeMarkup(written)
                    : model.Tokenizer.Encode(written);
                Assert.That(tokens, Is.EqualTo(Json.Integers(text["tokens"])));
                Assert.That(model.Tokenizer.Decode(tokens), Is.EqualTo(written));
            }
        }

        private static IEnumerable<TestCaseData> Cases(string suite)
        {
            Dictionary<string, object> read = Suite(suite);
            return List(read, "cases").Select(
                theCase => new TestCaseData(Context(read), theCase).SetName(
                    suite + "_" + theCase["name"]));
        }

        private static ModelOptions Context(Dictionary<string, object> suite)
        {
            return new ModelOptions { ContextTokens = (long)suite["context"] };
        }

        private static Dictionary<string, object> Suite(string name)
        {
            return Json.ReadFile(Path.Combine(Places.Conformance, name + ".json"));
        }

        private static IEnumerable<Dictionary<string, object>> List(
            Dictionary<string, object> json, string name)
        {
            return ((List<object>)json[name]).Cast<Dictionary<string, object>>();
        }

        private static object Get(Dictionary<string, object> json, string name)
        {
            return json.TryGetValue(name, out object value) ? value : null;
        }

        private static void RunTurn(ChatSession chat, Dictionary<string, object> turn)
        {
            var expect = (Dictionary<string, object>)turn["expect"];
            int cancelAfter = (int)(Get(turn, "cancel_after") as long? ?? -1);
            var pieces = new List<Piece>();
            string finish = null, error = null;
            PieceStream stream = chat.Stream((string)turn["prompt"], Options(turn));
            try
            {
                foreach (Piece piece in stream)
                {
                    pieces.Add(piece);
                    if (pieces.Count == cancelAfter)
                        stream.Cancel();
                }
                finish = stream.Completion.FinishReason.ToString().ToLowerInvariant();
            }
            catch (OperationCanceledException)
            {
                finish = "cancelled";
                Assert.That(stream.Completion.FinishReason, Is.EqualTo(FinishReason.Cancelled));
            }
            catch (WasteException failed)
            {
                error = failed.Status.ToString();
            }
            Assert.That(finish, Is.EqualTo(Get(expect, "finish")));
            Assert.That(error == null ? null : Name(error), Is.EqualTo(Get(expect, "error")));
            Check(expect, pieces, error == null || pieces.Count > 0 ? stream.Completion : null);
            Assert.That(chat.Position, Is.EqualTo((long)expect["position"]));
            Assert.That(chat.GetTokens().Length, Is.EqualTo(chat.Position));
        }

        private static void Check(Dictionary<string, object> expect, List<Piece> pieces,
                                  Completion completion)
        {
            Assert.That(Text(pieces, Channel.Response), Is.EqualTo(expect["text"]));
            Assert.That(Text(pieces, Channel.Thinking), Is.EqualTo(expect["thinking"]));
            int[] tokens = completion == null ? new int[0] : completion.Tokens.ToArray();
            Assert.That(tokens, Is.EqualTo(Json.Integers(expect["tokens"])));
            if (completion == null)
                return;
            Assert.That(completion.Text, Is.EqualTo(expect["text"]));
            Assert.That(completion.Thinking, Is.EqualTo(expect["thinking"]));
            var logProbs = Get(expect, "logprobs") as List<object>;
            if (logProbs != null)
                Assert.That(completion.LogProbs,
                            Is.EqualTo(logProbs.Select(Convert.ToDouble).ToArray()).Within(1e-3));
            else
                Assert.That(completion.LogProbs, Is.Null);
        }

        private static string Text(IEnumerable<Piece> pieces, Channel channel)
        {
            return string.Concat(pieces.Where(piece => piece.Channel == channel));
        }

        /// <summary>ContextFull is CONTEXT_FULL in the files.</summary>
        private static string Name(string status)
        {
            return string.Concat(status.Select(
                (letter, index) => (index > 0 && char.IsUpper(letter) ? "_" : "") +
                                   char.ToUpperInvariant(letter)));
        }

        private static GenerationOptions Options(Dictionary<string, object> turn)
        {
            var options = new GenerationOptions();
            if (turn.ContainsKey("options"))
                foreach (var option in (Dictionary<string, object>)turn["options"])
                    Set(options, option.Key, option.Value);
            foreach (object stop in Get(turn, "stop") as List<object> ?? new List<object>())
                options.Stop.Add((string)stop);
            if (turn.ContainsKey("stop_tokens"))
                foreach (int token in Json.Integers(turn["stop_tokens"]))
                    options.StopTokens.Add(token);
            foreach (object bias in Get(turn, "bias") as List<object> ?? new List<object>())
                options.LogitBias[Convert.ToInt32(((List<object>)bias)[0])] =
                    Convert.ToDouble(((List<object>)bias)[1]);
            return options;
        }

        private static void Set(GenerationOptions options, string name, object value)
        {
            string property = string.Concat(name.Split('_').Select(
                word => char.ToUpperInvariant(word[0]) + word.Substring(1)));
            if (property == "Logprobs")
                property = nameof(GenerationOptions.LogProbs);
            var info = typeof(GenerationOptions).GetProperty(property);
            Assert.That(info, Is.Not.Null, "an option " + name);
            info.SetValue(options, Convert.ChangeType(value, info.PropertyType));
        }
    }
}
