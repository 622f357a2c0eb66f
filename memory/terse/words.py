"""What English words do in a note: which are silent, which link, which only colour, and (all others) which tell."""

from enum import IntEnum

from memory.wordlist import listed


class Part(IntEnum):
    """What a word does. `TELLS` is everything that no list names: things, names, deeds, numbers."""

    MARK = 0
    SILENT = 1
    LINK = 2
    NOT = 3
    LIGHT = 4
    PRAISE = 5
    COLOUR = 6
    VAGUE = 7
    TELLS = 8


_SILENT = """
a an the am is are was were be been being do does did doing have has had having would shall should could can may might must
very really so super just actually totally definitely absolutely truly simply literally quite pretty rather too also even still already
kind kinda sorta basically honestly seriously certainly surely obviously probably maybe perhaps finally especially usually always
often sometimes mostly completely fully entirely highly extremely incredibly recently lately currently constantly
yeah yes yep yup yea nope nah wow woah whoa oh ah aww aw hey hi hello hiya ha haha hahaha lol omg btw woo woohoo yay ooh hmm um uh well
okay ok alright right sure thanks thank thx ty please welcome congrats congratulations sorry bye goodbye ttyl cheers dude man bro
anyway though although however then now once here else ever again indeed there
which who whom whose what when where why how if whether because cause since while that this these those
some any each every all both such own same other another more most much many few less least lot lots bunch ton tons bit
one ones thing things stuff something anything everything nothing someone anyone everyone everybody anybody somebody
how're what're where're who're way s t d ll re ve m gotta wanna ooo oof anyways whenever wherever exactly huh eh whew phew yes! plus apart aside let's lets let
then mhm yess definitely nowadays meanwhile otherwise mine prob def cuz
"""
_LINK = """
to of in on at for with from about as into onto over under through between around near by after before during until till against across
along toward towards like and or & but off instead than
"""
_NOT = """
not no never without don't doesn't didn't can't couldn't won't isn't aren't wasn't weren't haven't hasn't hadn't cannot wouldn't shouldn't
"""
_LIGHT = """
get got gotten getting gets make made making makes take took taken taking takes go went going gone goes come came coming comes give gave
given giving gives see saw seen seeing sees look looked looking looks seem seems seemed know knew known knows think thought thinking
thinks feel felt feels want wanted wants need needed needs try tried trying tries keep kept keeping keeps help helped helps helping hear
heard hearing tell told telling say said says saying talk talked talking show showed showing shows find found finding finds put use used
using start started starting starts love loved loving loves enjoy enjoyed enjoying hope hoping hoped wish wishing bet guess mean means
meant believe remember forget happen happened happening happens sound sounds sounded bring brought brings bringing share shared sharing
wonder agree agreed imagine appreciate appreciated understand become became turn turned work worked end ended able remind reminds reminded
wait waiting dealing deal handle check checking checked stay staying stayed spend spent spending leave left call called ask asked miss
missed meet met planning plan plans set gonna will
"""
_PRAISE = """
great good nice awesome amazing wonderful fantastic incredible cool lovely perfect special exciting interesting impressive adorable cute
sweet unreal rad sick neat brilliant excellent superb magical breathtaking fabulous terrific unbelievable insane epic mind-blowing wicked
whole certain entire main total real true absolute huge best better worth wild crazy definite cutest coolest
"""
_COLOUR = """
fun beautiful gorgeous stunning happy proud thrilled stoked pumped inspiring rewarding delicious yummy tasty tough hard difficult rough big
important lucky grateful thankful blessed sad worried wrong full long little bad free easy simple different early late next last past
recent glad excited ready
"""
_VAGUE = """
time times life lives world moment moments part sense fact idea ideas point reason case chance luck blast joy heart words word photo photos
picture pictures pic pics image guys folks guy experience experiences memories memory day days pleasure vibe vibes difference step steps
thought thoughts mind feeling feelings effort journey people person
"""
_LISTS = (
    (_VAGUE, Part.VAGUE),
    (_COLOUR, Part.COLOUR),
    (_PRAISE, Part.PRAISE),
    (_LIGHT, Part.LIGHT),
    (_NOT, Part.NOT),
    (_LINK, Part.LINK),
    (_SILENT, Part.SILENT),
)

FIRST = frozenset(listed("i i'm i've i'd i'll we we're we've we'd we'll"))
SECOND = frozenset(listed("you you're you've you'd you'll ya y'all u"))
THIRD = frozenset(listed("he she they he's she's they're they've he'd she'd they'd he'll she'll they'll"))
THING = frozenset(listed("it it's it'll it'd that that's that'll this there there's these those here's"))
OWN = frozenset(listed("my mine our ours myself ourselves me us"))
THEIRS = frozenset(listed("his her hers their theirs him them its itself himself herself themselves"))
YOURS = frozenset(["your", "yours", "yourself", "yourselves", "ur"])
PRONOUNS = FIRST | SECOND | THIRD | THING | OWN | THEIRS | YOURS
PARTS = {word: part for words, part in _LISTS for word in words.split()} | dict.fromkeys(PRONOUNS, Part.SILENT)

# A clause may begin behind these, when a pronoun follows.
JOINTS = frozenset(
    listed(
        """
    and but so because cause since while when though although which if as or where until unless who how that
    """
    )
)
# What comes back: "every" before these is half of the fact.
RECURRING = frozenset(
    listed(
        """
    day days night nights morning mornings afternoon evening week weeks weekend month months quarter year years hour hours minute minutes
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november
    december spring summer autumn winter christmas easter other second third single two three four five six time
    """
    )
)
WEEKLY = frozenset(listed("mondays tuesdays wednesdays thursdays fridays saturdays sundays weekends weekdays"))
HEADS = FIRST | SECOND | THIRD | THING | YOURS | {"my", "our", "let's"}

# For "he" and "she": whom a note may name instead.
MEN = frozenset(
    listed(
        """
    dad father son brother husband boyfriend grandpa grandfather uncle nephew boy guy man boss fiance fiancé
    """
    )
)
WOMEN = frozenset(
    listed(
        """
    mom mum mother daughter sister wife girlfriend grandma grandmother aunt niece girl woman lady fiancee fiancée
    """
    )
)

# Past forms that do not end in -ed, and forms that are their own past: "I put" never becomes "puts".
PAST = frozenset(
    listed(
        """
    went got made took had was were saw found met won came did gave bought lost felt began brought wrote ran told
    heard said left sold ate drove flew built broke chose fell grew knew spoke taught thought spent sent slept
    swam threw wore became kept held led meant paid sat stood understood understand woke bit blew caught dealt
    drew drank dug fed fought forgot forgave froze hid hung hurt kept knelt laid lay learnt lent lit read rode
    rang rose sang sank shook shone shot shrank shut slid sought spun split spread stole stuck struck swore swept
    swung tore withdrew wound beat bent bet burst cast cost cut hit let put quit set shed dreamt burnt leapt bled
    bred clung crept fled ground overcame rebuilt redid rewrote thrust undertook upset wept wrung dove snuck
    """
    )
)
MODALS = frozenset(
    listed(
        """
    will would can could should might must may shall cannot can't couldn't wouldn't don't didn't won't never not
    """
    )
)
COUNTED = frozenset(
    listed("two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred half")
)
