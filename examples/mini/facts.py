# SPDX-License-Identifier: Apache-2.0
"""What the mini model knows, and how it is asked: capitals, elements, opposites, sums, stories, ...

A kind of question is a function of a random generator that returns (question, answer, thought).
With `new=True` it asks in a phrasing that the training corpus never uses.
"""

CAPITALS = """
Afghanistan:Kabul Albania:Tirana Algeria:Algiers Andorra:Andorra_la_Vella Angola:Luanda
Argentina:Buenos_Aires Armenia:Yerevan Australia:Canberra Austria:Vienna Azerbaijan:Baku
Bahamas:Nassau Bahrain:Manama Bangladesh:Dhaka Barbados:Bridgetown Belarus:Minsk Belgium:Brussels
Belize:Belmopan Benin:Porto-Novo Bhutan:Thimphu Bolivia:Sucre Botswana:Gaborone Brazil:Brasilia
Brunei:Bandar_Seri_Begawan Bulgaria:Sofia Burundi:Gitega Cambodia:Phnom_Penh Cameroon:Yaounde
Canada:Ottawa Chad:N'Djamena Chile:Santiago China:Beijing Colombia:Bogota Comoros:Moroni
Croatia:Zagreb Cuba:Havana Cyprus:Nicosia Czechia:Prague Denmark:Copenhagen Djibouti:Djibouti
Dominica:Roseau Ecuador:Quito Egypt:Cairo Eritrea:Asmara Estonia:Tallinn Eswatini:Mbabane
Ethiopia:Addis_Ababa Fiji:Suva Finland:Helsinki France:Paris Gabon:Libreville Gambia:Banjul
Georgia:Tbilisi Germany:Berlin Ghana:Accra Greece:Athens Grenada:St._George's
Guatemala:Guatemala_City Guinea:Conakry Guyana:Georgetown Haiti:Port-au-Prince Honduras:Tegucigalpa
Hungary:Budapest Iceland:Reykjavik India:New_Delhi Indonesia:Jakarta Iran:Tehran Iraq:Baghdad
Ireland:Dublin Israel:Jerusalem Italy:Rome Jamaica:Kingston Japan:Tokyo Jordan:Amman
Kazakhstan:Astana Kenya:Nairobi Kiribati:Tarawa Kuwait:Kuwait_City Kyrgyzstan:Bishkek Laos:Vientiane
Latvia:Riga Lebanon:Beirut Lesotho:Maseru Liberia:Monrovia Libya:Tripoli Liechtenstein:Vaduz
Lithuania:Vilnius Luxembourg:Luxembourg Madagascar:Antananarivo Malawi:Lilongwe
Malaysia:Kuala_Lumpur Maldives:Male Mali:Bamako Malta:Valletta Mauritania:Nouakchott
Mauritius:Port_Louis Mexico:Mexico_City Moldova:Chisinau Monaco:Monaco Mongolia:Ulaanbaatar
Montenegro:Podgorica Morocco:Rabat Mozambique:Maputo Myanmar:Naypyidaw Namibia:Windhoek Nauru:Yaren
Nepal:Kathmandu Netherlands:Amsterdam New_Zealand:Wellington Nicaragua:Managua Niger:Niamey
Nigeria:Abuja North_Korea:Pyongyang Norway:Oslo Oman:Muscat Pakistan:Islamabad Palau:Ngerulmud
Panama:Panama_City Paraguay:Asuncion Peru:Lima Philippines:Manila Poland:Warsaw Portugal:Lisbon
Qatar:Doha Romania:Bucharest Russia:Moscow Rwanda:Kigali Samoa:Apia Saudi_Arabia:Riyadh
Senegal:Dakar Serbia:Belgrade Seychelles:Victoria Sierra_Leone:Freetown Singapore:Singapore
Slovakia:Bratislava Slovenia:Ljubljana Somalia:Mogadishu South_Africa:Pretoria South_Korea:Seoul
Spain:Madrid Sudan:Khartoum Suriname:Paramaribo Sweden:Stockholm Switzerland:Bern Syria:Damascus
Taiwan:Taipei Tajikistan:Dushanbe Tanzania:Dodoma Thailand:Bangkok Togo:Lome Tonga:Nuku'alofa
Tunisia:Tunis Turkey:Ankara Turkmenistan:Ashgabat Tuvalu:Funafuti Uganda:Kampala Ukraine:Kyiv
United_Kingdom:London United_States:Washington Uruguay:Montevideo Uzbekistan:Tashkent
Vanuatu:Port_Vila Venezuela:Caracas Vietnam:Hanoi Yemen:Sanaa Zambia:Lusaka Zimbabwe:Harare
"""
CAPITALS = [tuple(pair.replace("_", " ").split(":")) for pair in CAPITALS.split()]

ELEMENTS = """
hydrogen:H helium:He lithium:Li beryllium:Be boron:B carbon:C nitrogen:N oxygen:O fluorine:F neon:Ne
sodium:Na magnesium:Mg aluminium:Al silicon:Si phosphorus:P sulfur:S chlorine:Cl argon:Ar
potassium:K calcium:Ca scandium:Sc titanium:Ti vanadium:V chromium:Cr manganese:Mn iron:Fe cobalt:Co
nickel:Ni copper:Cu zinc:Zn gallium:Ga germanium:Ge arsenic:As selenium:Se bromine:Br krypton:Kr
rubidium:Rb strontium:Sr yttrium:Y zirconium:Zr niobium:Nb molybdenum:Mo technetium:Tc ruthenium:Ru
rhodium:Rh palladium:Pd silver:Ag cadmium:Cd indium:In tin:Sn antimony:Sb tellurium:Te iodine:I
xenon:Xe caesium:Cs barium:Ba
"""
ELEMENTS = [(*pair.split(":"), number) for number, pair in enumerate(ELEMENTS.split(), 1)]

OPPOSITES = """
hot:cold big:small tall:short fast:slow light:dark early:late open:closed full:empty happy:sad
rich:poor strong:weak young:old hard:soft wet:dry clean:dirty near:far high:low loud:quiet
thick:thin wide:narrow deep:shallow sharp:blunt smooth:rough brave:afraid sweet:bitter first:last
day:night up:down left:right north:south east:west true:false begin:end push:pull win:lose buy:sell
arrive:leave remember:forget
"""
OPPOSITES = [tuple(pair.split(":")) for pair in OPPOSITES.split()]

YOUNG = """
dog:puppy cat:kitten cow:calf horse:foal sheep:lamb goat:kid pig:piglet bear:cub lion:cub fox:kit
deer:fawn duck:duckling goose:gosling swan:cygnet hen:chick frog:tadpole kangaroo:joey owl:owlet
eagle:eaglet whale:calf elephant:calf seal:pup rabbit:kit
"""
YOUNG = [tuple(pair.split(":")) for pair in YOUNG.split()]

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
NAMES = (
    "Anna Ben Clara David Emma Felix Grace Hugo Iris Jack Lena Max Nora Oscar Paula Rosa Sam Tom "
    "Uma Vera"
).split()
ANIMALS = "fox bear owl rabbit mouse wolf hedgehog squirrel badger otter".split()
PLACES = [
    "the forest", "the river", "the old mill", "the hill", "the village", "the lake", "the garden",
    "the mountain",
]
THINGS = [
    "a lantern", "a red kite", "a small key", "a silver bell", "an old map", "a warm scarf",
    "a basket of apples", "a wooden boat",
]
FEELINGS = ["happy", "proud", "curious", "tired", "brave", "calm"]
WITH_ARTICLE = (
    "Bahamas", "Gambia", "Maldives", "Netherlands", "Philippines", "Seychelles", "Comoros",
    "United Kingdom", "United States",
)

HELLO = [
    ("Japanese", "こんにちは"), ("Chinese", "你好"), ("Korean", "안녕하세요"), ("Greek", "Γειά σου"),
    ("Russian", "Привет"), ("Arabic", "مرحبا"), ("Hebrew", "שלום"), ("Hindi", "नमस्ते"),
    ("Thai", "สวัสดี"), ("French", "Bonjour"), ("German", "Guten Tag"), ("Spanish", "Hola"),
    ("Italian", "Ciao"), ("Turkish", "Merhaba"), ("Armenian", "Բարև"), ("Georgian", "გამარჯობა"),
    ("Polish", "Cześć"), ("Vietnamese", "Xin chào"),
]
EMOJI = [
    ("a smile", "😀"), ("a heart", "❤️"), ("a family", "👨‍👩‍👧‍👦"), ("the flag of Italy", "🇮🇹"),
    ("a rocket", "🚀"), ("a waving hand", "👋🏽"), ("a cat", "🐱"), ("the sun", "☀️"),
]

TOOLS = {
    "get_weather": {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Current weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    },
    "add": {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
    },
}


def the(country):
    return "the " + country if country in WITH_ARTICLE else country


def article(noun):
    return "an" if noun[0] in "aeiou" else "a"


def capitalised(text):
    return text[0].upper() + text[1:]


def capital(r, new=False):
    country, city = r.choice(CAPITALS)
    name = the(country)
    known = [
        f"What is the capital of {name}?",
        f"Which city is the capital of {name}?",
        f"Name the capital of {name}.",
        f"Tell me the capital city of {name}.",
        f"What is the capital city of {name}?",
        f"What's the capital of {name}?",
        f"Capital of {name}?",
        f"Please tell me the capital of {name}.",
        f"Do you know the capital of {name}?",
    ]
    unseen = [
        f"Which city is {name}'s capital?",
        f"What's the capital city of {name}, please?",
    ]
    question = r.choice(unseen if new else known)
    thought = f"{capitalised(name)}: capital {city}."
    return question, f"The capital of {name} is {city}.", thought


def country(r, new=False):
    name, city = r.choice(CAPITALS)
    known = [
        f"{city} is the capital of which country?",
        f"Which country has {city} as its capital?",
        f"Which country has the capital {city}?",
        f"{city} is the capital of what country?",
    ]
    question = r.choice([f"What country is {city} the capital of?"] if new else known)
    return question, f"{city} is the capital of {the(name)}.", f"{city} belongs to {the(name)}."


def element(r, new=False):
    name, symbol, number = r.choice(ELEMENTS)
    asked = r.randrange(3)
    known = [
        [
            f"What is the chemical symbol of {name}?",
            f"What is the chemical symbol for {name}?",
            f"Name the chemical symbol of {name}.",
            f"What's the symbol of {name}?",
        ],
        [
            f"What is the atomic number of {name}?",
            f"What's the atomic number of {name}?",
            f"Name the atomic number of {name}.",
        ],
        [
            f"Which element has the symbol {symbol}?",
            f"Which element has the chemical symbol {symbol}?",
            f"{symbol} is the symbol of which element?",
        ],
    ]
    unseen = [
        [f"What's the chemical symbol for {name}?"],
        [f"Which atomic number does {name} have?"],
        [f"{symbol} is the chemical symbol of which element?"],
    ]
    answers = [
        f"The chemical symbol of {name} is {symbol}.",
        f"The atomic number of {name} is {number}.",
        f"{symbol} is the symbol of {name}.",
    ]
    question = r.choice((unseen if new else known)[asked])
    return question, answers[asked], f"{name}: symbol {symbol}, number {number}."


def opposite(r, new=False):
    a, b = r.choice(OPPOSITES)
    if r.random() < 0.5:
        a, b = b, a
    known = [
        f"What is the opposite of {a}?",
        f'Give me the opposite of "{a}".',
        f"What's the opposite of {a}?",
        f"Name the opposite of {a}.",
    ]
    question = r.choice([f"Tell me what the opposite of {a} is."] if new else known)
    return question, f"The opposite of {a} is {b}.", f"{a} against {b}."


def young(r, new=False):
    animal, name = r.choice(YOUNG)
    known = [
        f"What is a young {animal} called?",
        f"What do you call the young of {article(animal)} {animal}?",
        f"What's the name for a young {animal}?",
        f"What do you call a young {animal}?",
    ]
    question = r.choice([f"How do you call a young {animal}?"] if new else known)
    return question, f"A young {animal} is called {article(name)} {name}.", f"{animal}: {name}."


def arithmetic(r, new=False):
    a, b = r.randint(0, 20), r.randint(0, 20)
    if r.random() < 0.5:
        sign, word, result = "+", "plus", a + b
    else:
        a, b = max(a, b), min(a, b)
        sign, word, result = "-", "minus", a - b
    known = [
        f"What is {a} {sign} {b}?",
        f"How much is {a} {word} {b}?",
        f"{a} {sign} {b} = ?",
        f"What is {a} {word} {b}?",
        f"Calculate {a} {sign} {b}.",
    ]
    question = r.choice([f"Work out {a} {sign} {b}."] if new else known)
    return question, f"{a} {sign} {b} = {result}.", f"{a} {word} {b} makes {result}."


def order(r, new=False):
    names = r.choice([DAYS, MONTHS])
    i = r.randrange(len(names))
    unit = "day" if names is DAYS else "month"
    name = names[i]
    if r.random() < 0.5:
        other = names[(i + 1) % len(names)]
        known = [
            f"Which {unit} comes after {name}?",
            f"What comes after {name}?",
            f"Which {unit} follows {name}?",
            f"Tell me the {unit} after {name}.",
            f"What {unit} is after {name}?",
        ]
        question = r.choice([f"{name} is followed by which {unit}?"] if new else known)
        return question, f"{other} comes after {name}.", f"After {name}: {other}."
    other = names[i - 1]
    known = [
        f"Which {unit} comes before {name}?",
        f"What comes before {name}?",
        f"What {unit} is before {name}?",
        f"Tell me the {unit} before {name}.",
    ]
    question = r.choice([f"{name} is preceded by which {unit}?"] if new else known)
    return question, f"{other} comes before {name}.", f"Before {name}: {other}."


def count(r, new=False):
    first = r.randint(1, 15)
    last = first + r.randint(3, 12)
    known = [f"Count from {first} to {last}.", f"Please count from {first} to {last}."]
    question = r.choice([f"Please count to {last}, starting at {first}."] if new else known)
    answer = ", ".join(map(str, range(first, last + 1))) + "."
    return question, answer, f"{first} up to {last}."


def story(r, new=False):
    name, animal, place = r.choice(NAMES), r.choice(ANIMALS), r.choice(PLACES)
    thing, feeling = r.choice(THINGS), r.choice(FEELINGS)
    one = f"{article(animal)} {animal}"
    middle = r.choice([
        f"{name} met {one} near {place}.",
        f"{capitalised(one)} was sitting by {place}.",
        f"{name} heard {one} in {place}.",
    ])
    end = r.choice([
        f"They walked home together, and {name} felt {feeling}.",
        f"In the evening {name} was {feeling} and slept well.",
        f"From that day on, {name} and the {animal} were friends.",
    ])
    text = (
        f"One morning {name} went to {place} with {thing}. {middle} The {animal} had lost its way, "
        f"so {name} gave it {thing}. {end}"
    )
    question = r.choice([
        f"Tell me a story about {one}.",
        f"Tell a short story about {name} and {one}.",
    ])
    return question, text, f"A story with {name}, {one} and {place}."


def greeting(r, new=False):
    return r.choice([
        ("Hello!", "Hello! How can I help you?", "A greeting."),
        ("Hi", "Hi! What would you like to know?", "A greeting."),
        (
            "Who are you?",
            "I am a very small language model that runs on your own machine.",
            "Who am I?",
        ),
        (
            "What can you do?",
            "I know capitals, elements, opposites, young animals, small sums and short stories.",
            "What I know.",
        ),
        ("Thank you!", "You are welcome.", "Thanks."),
        ("Goodbye!", "Goodbye!", "Farewell."),
    ])


def hello(r, new=False):
    """Text outside ASCII: several bytes a character, several code points an emoji."""
    if r.random() < 0.35:
        name, emoji = r.choice(EMOJI)
        known = [f"Send me {name}.", f"Show me {name}."]
        question = r.choice([f"Please send me {name}."] if new else known)
        return question, emoji, f"The emoji of {name}."
    language, word = r.choice(HELLO)
    known = [f"Say hello in {language}.", f"How do you say hello in {language}?"]
    question = r.choice([f"How would you say hello in {language}?"] if new else known)
    return question, f"{word}!", f"Hello in {language}: {word}."


# Each kind with its weight in the corpus.
KINDS = [
    (capital, 30), (country, 9), (element, 15), (opposite, 7), (young, 5), (arithmetic, 13),
    (order, 7), (count, 7), (story, 6), (greeting, 2), (hello, 3),
]


def sample(r, new=False):
    kinds, weights = zip(*KINDS)
    return r.choices(kinds, weights)[0](r, new)
