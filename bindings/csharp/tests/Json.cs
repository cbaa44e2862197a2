// SPDX-License-Identifier: Apache-2.0
//
// A reader of the conformance files: the two runtimes share no JSON reader that keeps a NUL inside
// a string. Objects become dictionaries, arrays lists, numbers
// longs or doubles. For tests only.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;

namespace Waste.Tests
{
    internal sealed class Json
    {
        private readonly string text;
        private int at;

        private Json(string text)
        {
            this.text = text;
        }

        internal static Dictionary<string, object> ReadFile(string path)
        {
            var reader = new Json(File.ReadAllText(path, Encoding.UTF8));
            object value = reader.Value();
            reader.Blanks();
            if (reader.at != reader.text.Length)
                throw reader.Wrong("the end");
            return (Dictionary<string, object>)value;
        }

        internal static int[] Integers(object list)
        {
            return ((List<object>)list).Select(Convert.ToInt32).ToArray();
        }

        private object Value()
        {
            Blanks();
            switch (text[at])
            {
                case '{':
                    return Members();
                case '[':
                    return Elements();
                case '"':
                    return Text();
                case 't':
                    return Word("true", true);
                case 'f':
                    return Word("false", false);
                case 'n':
                    return Word("null", null);
                default:
                    return Number();
            }
        }

        private Dictionary<string, object> Members()
        {
            var members = new Dictionary<string, object>();
            at++;
            while (!Ends('}', members.Count))
            {
                Blanks();
                string name = Text();
                Expect(':');
                members.Add(name, Value());
            }
            return members;
        }

        private List<object> Elements()
        {
            var elements = new List<object>();
            at++;
            while (!Ends(']', elements.Count))
                elements.Add(Value());
            return elements;
        }

        private bool Ends(char end, int count)
        {
            Blanks();
            if (text[at] == end)
            {
                at++;
                return true;
            }
            if (count > 0)
                Expect(',');
            return false;
        }

        private string Text()
        {
            var read = new StringBuilder();
            Expect('"');
            for (; text[at] != '"'; at++)
                read.Append(text[at] == '\\' ? Escaped() : text[at]);
            at++;
            return read.ToString();
        }

        private char Escaped()
        {
            char kind = text[++at];
            if (kind == 'u')
            {
                at += 4;
                return (char)Convert.ToInt32(text.Substring(at - 3, 4), 16);
            }
            int known = "\"\\/bfnrt".IndexOf(kind);
            if (known < 0)
                throw Wrong("an escape");
            return "\"\\/\b\f\n\r\t"[known];
        }

        private object Number()
        {
            int start = at;
            while (at < text.Length && "+-.eE0123456789".IndexOf(text[at]) >= 0)
                at++;
            string number = text.Substring(start, at - start);
            return long.TryParse(number, NumberStyles.AllowLeadingSign,
                                 CultureInfo.InvariantCulture, out long whole)
                ? whole
                : (object)double.Parse(number, NumberStyles.Float, CultureInfo.InvariantCulture);
        }

        private object Word(string word, object value)
        {
            if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0)
                throw Wrong(word);
            at += word.Length;
            return value;
        }

        private void Expect(char wanted)
        {
            Blanks();
            if (text[at] != wanted)
                throw Wrong(wanted.ToString());
            at++;
        }

        private void Blanks()
        {
            while (at < text.Length && " \t\r\n".IndexOf(text[at]) >= 0)
                at++;
        }

        private FormatException Wrong(string wanted)
        {
            return new FormatException("JSON: " + wanted + " expected at " + at);
        }
    }
}
