# SPDX-License-Identifier: Apache-2.0
"""Strings that are hard to tokenise, from a fixed seed: all short strings over one character of
each class, words of every script of Unicode 16, emoji sequences, white space of all kinds, digits,
contractions, long runs, code points at random, and real text.
"""
import itertools
import pathlib
import random
import sysconfig

import reference

SCRIPTS = """Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak
Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian
Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan
Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic
Garay Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Gurung_Khema Han
Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited
Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li
Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A
Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi
Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro
Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong
Ogham Ol_Chiki Ol_Onal Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian
Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau
Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham
SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog
Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh
Tirhuta Todhri Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi
Zanabazar_Square""".split()

# One character of each combination of the pattern's classes, and those that it names.
KINDS = ["\u4e2d", "\u3007", "\u2e80", "\U00016ff0", "A", "b", "\u01c5", "\u3042", "\u0301", "7",
         " ", "\u3000", "\n", "\r", "!", "'", "s"]
SUFFIXES = ["s", "S", "\u017f", "t", "T", "re", "Re", "rE", "ve", "VE", "m", "M", "ll", "lL", "d",
            "D", "l", "r", "v", "k", "\u212a", "re\u0301", "\u00df", ""]
PEOPLE = "\U0001f468\U0001f469\U0001f467\U0001f466\U0001f9d1\U0001f471\U0001f44b\U0001f44d"
TONES = ["", "\U0001f3fb", "\U0001f3ff"]
SIGNS = ["\u2764\ufe0f", "\u2695\ufe0f", "\U0001f4bb", "\U0001f680", "\u2640\ufe0f",
         "1\ufe0f\u20e3", "#\ufe0f\u20e3", "\u203c\ufe0f", "\U0001f600",
         "\U0001f3f4\U000e0067\U000e0062\U000e007f"]
ODD = ("\0\x01\x1f\x7f\x80\x85\x9f\xa0\xad\u034f\u061c\u070f\u180e\u200b\u200c\u200d\u200e\u2028"
       "\u2029\u202f\u205f\u2060\ufdd0\ufeff\ufffd\ufffe\uffff\ue000\uf8ff\U0001fffe\U000e0001"
       "\U000f0000\U0010ffff\u0378\U0003ffff")
BREAKS = [" ", " ", " ", ", ", ". ", "\n", "-", "  ", "\u3002", "\u060c ", "'", "\u2019"]
STEMS = ["I", "don", "THEY", "\u00e9t\u00e9", "\u0416", "\u4e2d", "5", "", " ", "'", "\u3042",
         "a\u0301", "\u01c5"]
NAME_PARTS = ["get", "HTTP", "Id", "x", "URLs", "\u00c9t", "\u0414\u043e\u043c", "i", "Phone",
              "\u01c5", "2", "_", "\u02b0"]


class Makers:
    """Each method makes one string; `make` draws which."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.scripts = [reference.members(rf"\p{{{name}}}") for name in SCRIPTS]
        self.spaces = reference.members(r"\s")
        self.numbers = reference.members(r"\p{N}")
        self.marks = reference.members(r"\p{M}")
        self.titles = reference.members(r"\p{Lt}") + reference.members(r"\p{Lm}")
        self.kinds = [self.word_of, self.sentence, self.mixed_scripts, self.emoji, self.run,
                      self.white_space, self.contraction, self.digits, self.camel_case,
                      self.code_points, self.odd, self.kind_soup, self.marked]

    def make(self):
        return self.r.choice(self.kinds)()

    def some(self, characters, low, high):
        return "".join(self.r.choices(characters, k=self.r.randint(low, high)))

    def word_of(self, script=None):
        script = script or self.r.choice(self.scripts)
        # Neighbours in the table are mostly of one case and kind; a few from anywhere are not.
        start = self.r.randrange(len(script))
        word = self.some(script[start:start + 24], 1, 9)
        return word if self.r.random() < .6 else word + self.some(script, 1, 3)

    def several(self, low, high, make_one):
        return "".join(make_one() for _ in range(self.r.randint(low, high)))

    def sentence(self):
        script = self.r.choice(self.scripts)
        return self.several(2, 8, lambda: self.word_of(script) + self.r.choice(BREAKS))

    def mixed_scripts(self):
        return self.several(2, 6, lambda: self.word_of() + self.r.choice(["", "", " "]))

    def emoji(self):
        return self.several(1, 8, lambda: self.r.choice([
            self.flag, self.joined_people, lambda: self.r.choice(SIGNS),
            lambda: self.r.choice([" ", "a", "!", "\n", "\u200d"])])())

    def flag(self):
        return "".join(chr(0x1F1E6 + self.r.randrange(26)) for _ in range(2))

    def joined_people(self):
        people = [self.r.choice(PEOPLE) + self.r.choice(TONES) for _ in range(self.r.randint(1, 4))]
        return "\u200d".join(people)

    def run(self):
        size = self.r.choice([2, 3, 4, 7, 63, 64, 65, 66, 130, 700])
        around = ["", "", "x", " ", "\n", "7", "\u4e2d", "!"]
        others = ["\U0001f600", self.r.choice(self.spaces), "ab", " \n", "\r\n", "aB"]
        one = self.r.choice(KINDS + others)
        return self.r.choice(around) + one * size + self.r.choice(around)

    def white_space(self):
        usual = " " * 8 + "\n\n\r\t"
        return self.several(1, 8, lambda: self.r.choice([
            lambda: self.some(usual, 1, 6), lambda: self.some(self.spaces, 1, 4),
            lambda: self.r.choice(["x", "!", "5", "\u4e2d", "\u200b", "Ab", "'s"])])())

    def contraction(self):
        mark = self.r.choice(["'", "'", "'", "\u2019", "''", "`"])
        after = self.r.choice(["", "x", "'s", " ", "\u0301", "\n", "S"])
        return self.r.choice(STEMS) + mark + self.r.choice(SUFFIXES) + after

    def digits(self):
        source = self.r.choice(["0123456789", self.numbers, self.numbers + "0123456789" * 50])
        marks = ["", ".", ",", " ", "a", "\u4e2d", "%", "\u0301"]
        return self.several(1, 4, lambda: self.some(source, 1, 8) + self.r.choice(marks))

    def camel_case(self):
        return self.several(2, 7, lambda: self.r.choice(NAME_PARTS + [self.r.choice(self.titles)]))

    def code_points(self):
        top = self.r.choice([0x100, 0x800, 0x3000, 0x10000, 0x20000, 0x110000])
        points = (self.r.randrange(top) for _ in range(self.r.randint(1, 16)))
        return "".join(chr(c) for c in points if not 0xD800 <= c < 0xE000)

    def odd(self):
        return self.some(ODD + "a 1\n\u4e2d", 1, 12)

    def kind_soup(self):
        return self.some(KINDS, 5, 24)

    def marked(self):
        letters = ["a", "B", " ", "!", "\u4e2d", "1", "\n"]
        return self.several(1, 6, lambda: self.some(letters, 1, 2) + self.some(self.marks, 0, 3))


def short_strings():
    """Every string of up to four characters over KINDS."""
    for size in range(5):
        yield from ("".join(s) for s in itertools.product(KINDS, repeat=size))


def real_texts(limit):
    """Pieces of files that most systems have: Python's own, and locales with their languages."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    folders = [(library, "*.py"), (library, "*.txt"), (library / "idlelib", "*.txt"),
               (pathlib.Path("/usr/share/i18n/locales"), "*_*"),
               (pathlib.Path("/usr/share/common-licenses"), "*")]
    r, found = random.Random(limit), []
    for folder, names in folders:
        for path in sorted(folder.glob(names)):
            text = path.read_text(encoding="utf-8", errors="ignore") if path.is_file() else ""
            while text:
                size = r.choice([20, 80, 400, 2000])
                found.append(text[:size])
                text = text[size:]
    r.shuffle(found)
    return found[:limit]


def with_specials(texts, seed):
    """The texts with special tokens, whole and in part, put in anywhere."""
    r = random.Random(seed)
    for text in texts:
        for _ in range(r.randint(1, 3)):
            special = r.choice(reference.SPECIAL_TEXTS)
            special = special if r.random() < .8 else special[:r.randrange(len(special))]
            at = r.randint(0, len(text))
            text = text[:at] + special + text[at:]
        yield text
