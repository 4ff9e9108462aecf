"""Mutants of meaning: small changes of what the library's functions do, found in the syntax tree that clang makes of each file.

A mutant is a few insertions into the source. A copy of the tree contains all mutants at once, and a number chooses one when the
program starts (mutant.h). Changes that no program could notice are left out: of assertions, probes, annotations, hints to the
processor, messages of errors and expressions that are not evaluated; inside macros; of the order of calls that only prepare private
memory or only give it back; of the order of commuting arguments.
"""
import collections
import ctypes
import functools
import hashlib
import pathlib
import re
import subprocess
import sys

from mutants import HEADERS, told_apart

try:
    from clang import cindex
except ImportError:  # Debian has it for its own Python alone.
    sys.path.append("/usr/lib/python3/dist-packages")
    from clang import cindex

KINDS = ("statement", "balance", "condition", "bound", "swap", "return", "exchange")
ARGUMENTS = ["-xc", "-std=c11", "-D_GNU_SOURCE", "-DWEIR_ASSERT_LEVEL=0", "-Iinclude", "-Ilib/weir", "-Ilib/flow", "-pthread", "-mcx16"]


@functools.cache
def mpi_includes():
    """Where lib/mpi finds mpi.h, as arguments of a compiler. Nothing, if there is no MPI."""
    found = subprocess.run(["pkg-config", "--cflags-only-I", "ompi-c"], capture_output=True, text=True)
    return [f"-isystem{word[2:]}" for word in found.stdout.split()]


# Statements without an effect that a program can see.
HINT = re.compile(r"(\(void\)\s*)?(WEIR_ASSERT|WEIRI_PROBE|WEIRI_SHM_STEP|weiri_pause\b|weiri_assert|va_end|__builtin_prefetch)"
                  r"|\(void\)\s*\w+\s*[,;)]|\(void\)\s*\w+$")
# Functions without such an effect, by their names or by what stands before them: lib/weir/base/assert.h.
ASSERTS = re.compile(r"(weiri_\w+_)?assert_\w+")
UNSEEN = re.compile(r"\bWEIRI_UNSEEN\b")
# Calls on whose number or presence other code relies.
BALANCE = re.compile(r"(retain|release|free|notify|wake|post|signal|count|destroy|borrow|give|leave|enter|arrive|join|close|cancel|retire|"
                     r"unref|ref\b|fetch_add|fetch_sub|add|remove|push|pop|begin|end)\w*\s*\(")
# Two such calls may come in either order: they only prepare private memory, give it back, or lay it out.
PREPARES = re.compile(r"[\w>.*-]+_init\(|[\w\[\].>*-]+ = (weiri_layout_at|weiri_allocate\w*)\(|weiri_spec\w*\(")
GIVES_BACK = re.compile(r"(\(void\)\s*)?\w*(weiri_release|_release|_fini|_free|_close|_destroy|free_\w+)\(")
# The arguments of these commute.
COMMUTES = ("weiri_add", "weiri_multiply", "weiri_layout_add", "weiri_spec_compatible", "weiri_dim_compatible", "weiri_dim_merge",
            "weir_shape_equal", "swap", "same_output", "scale")
OPPOSITE = {"true": "false", "false": "true"}
MESSAGE = ("weiri_describe", "weiri_fail", "weiri_log", "snprintf", "vsnprintf")

# A file that is not C by itself is read through one of the files that include it.
INCLUDED_BY = {"lib/weir/ring/format_calls.h": "lib/weir/ring/ltq64.c"}

# file, function, text and change identify a mutant. edits: (offset, rank..., text); the text is inserted at the offset, lower ranks first.
Meaning = collections.namedtuple("Meaning", "layer kind file function text change line edits")


def key_of(m):
    return m.file, m.function, m.text, m.change


class Unit:
    """One file and the mutants in it."""

    def __init__(self, root, file):
        self.file, self.layer = file, layer_of(file)
        self.bytes = (root / file).read_bytes()
        self.code = blank_comments(self.bytes.decode("latin-1"))
        self.lines = self.bytes.decode().splitlines()
        self.starts = [0] + [match.end() for match in re.finditer(r"\n", self.code)]
        self.found = []
        self.seen = set()
        self.function = None
        cindex_ready()
        options = cindex.TranslationUnit.PARSE_NONE
        arguments = [a.replace("-I", f"-I{root}/") for a in ARGUMENTS] + mpi_includes()
        self.unit = cindex.Index.create().parse(str(root / INCLUDED_BY.get(file, file)), arguments, options=options)
        fatal = [d for d in self.unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if fatal:
            raise SystemExit(f"mutate: clang cannot read {file}: {fatal[0]}")
        for cursor in self.unit.cursor.get_children():
            here = cursor.location.file is not None and cursor.location.file.name == str(root / file)
            is_function = cursor.kind == cindex.CursorKind.FUNCTION_DECL and cursor.is_definition()
            if here and is_function and not self.is_for_assertions(cursor):
                self.visit_function(cursor)

    def is_for_assertions(self, cursor):
        head = self.code[self.code.rfind("\n", 0, cursor.extent.start.offset) + 1:cursor.extent.end.offset].partition("{")[0]
        return ASSERTS.fullmatch(cursor.spelling) or UNSEEN.search(head)

    # -- places ----------------------------------------------------------------------------------------------------------------

    def span(self, cursor):
        """Returns where the cursor's text begins and ends in this file, or None. The arguments of a macro are text of this file."""
        raw = cursor.extent
        start, end = file_offset(cindex.conf.lib.clang_getRangeStart(raw)), file_offset(cindex.conf.lib.clang_getRangeEnd(raw))
        if start is None or end is None or not start < end:
            return None
        end = self.behind_macro(end)
        if not self.body[0] <= start < end <= self.body[1]:
            return None
        text = self.code[start:end]
        return (start, end) if balanced(text) and "#" not in text else None

    def behind_macro(self, end):
        """
        Returns the end of a text that clang ends at `end`. If the text's last token comes from a macro, and the text stands in the
        argument of another macro, clang names the beginning of the inner macro: an identifier follows.
        """
        match = re.compile(r"(?<!\w)[A-Za-z_]\w*").match(self.code, end)
        if not match:
            return end
        end, depth = match.end(), 0
        while end < len(self.code) and (depth > 0 or self.code[end] == "("):
            depth += {"(": 1, ")": -1}.get(self.code[end], 0)
            end += 1
            if depth == 0:
                break
        return end

    def text(self, span):
        """Returns the text of a span in one line."""
        return " ".join(self.code[span[0]:span[1]].split())

    def after_semicolon(self, span):
        match = re.compile(r"\s*;").match(self.code, span[1])
        return match.end() if match else None

    def add(self, kind, span, change, edits):
        line = self.code.count("\n", 0, span[0])
        key = (span, change)
        if key in self.seen:
            return
        self.seen.add(key)
        text = " ".join(self.lines[line].split())
        self.found.append(Meaning(self.layer, kind, self.file, self.function, text, change, line + 1, tuple(edits)))

    # -- wrapping: {} is where the mutant's condition goes ------------------------------------------------------------------------

    def around(self, span, before, after, depth=0):
        """Returns edits that wrap a span. At one place, a longer wrapping begins first and ends last."""
        size = span[1] - span[0]
        return [(span[0], 1, -size, depth, before), (span[1], 0, size, -depth, after)]

    # -- the tree ------------------------------------------------------------------------------------------------------------------

    def visit_function(self, cursor):
        children = list(cursor.get_children())
        body = children[-1] if children else None
        if body is None or body.kind != cindex.CursorKind.COMPOUND_STMT:
            return
        start, end = body.extent.start.offset, body.extent.end.offset
        self.function, self.body, self.result = cursor.spelling, (start, end), cursor.result_type
        statements = list(body.get_children())
        if len(statements) >= 2 and statements[0].kind != cindex.CursorKind.RETURN_STMT:
            zero = self.zero()
            if zero is not None:
                head = self.code.rfind("\n", 0, start - 1) + 1
                name = self.code.find(self.function + "(", max(0, self.code.rfind("\n\n", 0, start)), start)
                place = name if name >= 0 else head
                self.add("return", (place, start), f"returns {plain(zero) or 'at once'} before anything",
                         [(start + 1, 1, 0, 0, f" if ({{}}) return {zero};")])
                # Another return stands in the middle: before the second half of the statements that are not declarations.
                whole = [s for s in statements if s.kind != cindex.CursorKind.DECL_STMT]
                if len(whole) >= 4:
                    span = self.span(whole[len(whole) // 2])
                    if span is not None and whole[len(whole) // 2].kind != cindex.CursorKind.RETURN_STMT:
                        self.add("return", span, f"returns {plain(zero) or 'early'} before this",
                                 [(span[0], 1, -10**9, 0, f"if ({{}}) return {zero}; ")])
        self.visit_list(statements)

    def zero(self):
        kind = self.result.get_canonical().kind
        if kind == cindex.TypeKind.VOID:
            return ""
        if kind == cindex.TypeKind.RECORD:
            return f"({self.result.spelling.replace('const ', '')}){{{{0}}}}"
        return "false" if kind == cindex.TypeKind.BOOL else "0"

    def visit_list(self, statements):
        before = None
        for cursor in statements:
            span = self.visit_statement(cursor)
            if before is not None and span is not None and self.calls(before) and self.calls(span) and self.in_order(before, span):
                a, b = self.text(before), self.text(span)
                edits = [(before[0], 1, -(before[1] - before[0]) - 1, 0, f"if ({{}}) {{{{ {brace(b)} }}}} "),
                         *self.around(span, "{{ if (!{}) ", " }}", 1)]
                self.add("swap", before, f"{a} after {b}", edits)
            before = span

    def in_order(self, a, b):
        """Returns whether the order of two statements may matter."""
        a, b = self.text(a), self.text(b)
        return a != b and not any(pattern.match(a) and pattern.match(b) for pattern in (PREPARES, GIVES_BACK))

    def calls(self, span):
        text = self.code[span[0]:span[1]]
        return re.search(r"\w\(", text) is not None and not re.match(r"\(void\)\s*mem(set|cpy)", text)

    def visit_body(self, cursor):
        """Visits the body of an if or a loop."""
        if cursor.kind == cindex.CursorKind.COMPOUND_STMT:
            self.visit_list(list(cursor.get_children()))
        else:
            self.visit_statement(cursor)

    def visit_statement(self, cursor):
        """Visits a statement. Returns its span with the semicolon if it is an expression, else None."""
        K = cindex.CursorKind
        kind, children, span = cursor.kind, list(cursor.get_children()), self.span(cursor)
        if span is not None and HINT.match(self.code, span[0], span[1] + 1):
            return None
        if kind == K.COMPOUND_STMT:
            self.visit_list(children)
        elif kind == K.IF_STMT:
            self.condition(children[0])
            for child in children[1:]:
                self.visit_body(child)
        elif kind == K.WHILE_STMT:
            self.condition(children[0])
            self.visit_body(children[1])
        elif kind == K.DO_STMT:
            if span is None or not self.code.startswith("do", span[0]):
                return None
            self.visit_body(children[0])
            self.condition(children[1])
        elif kind == K.FOR_STMT:
            self.visit_for(span, children)
        elif kind == K.SWITCH_STMT:
            self.visit_expression(children[0])
            self.visit_body(children[-1])
        elif kind in (K.CASE_STMT, K.DEFAULT_STMT, K.LABEL_STMT):
            return self.visit_statement(children[-1])
        elif kind == K.RETURN_STMT:
            self.visit_return(span, children)
        elif kind == K.DECL_STMT:
            for variable in children:
                self.visit_variable(variable)
        elif kind in (K.BREAK_STMT, K.CONTINUE_STMT):
            end = self.after_semicolon(span) if span else None
            if end:
                self.drop("statement", (span[0], end))
        elif kind.is_expression() and span is not None:
            end = self.after_semicolon(span)
            if end is None:
                return None
            whole = (span[0], end)
            text = self.text(whole)
            self.drop("balance" if BALANCE.search(text) else "statement", whole)
            if not re.match(r"\(void\)\s*\w*(memset|snprintf|weiri_fail|weiri_describe)\(", text):
                self.visit_expression(cursor)
            return whole
        return None

    def drop(self, kind, span):
        self.add(kind, span, f"left out: {self.text(span)}", self.around(span, "{{ if (!{}) ", " }}", 1))

    def visit_for(self, span, children):
        if span is None:
            return
        open_at = self.code.index("(", span[0])
        marks, depth = [], 0
        for at in range(open_at, span[1]):
            if self.code[at] in "([{":
                depth += 1
            elif self.code[at] in ")]}":
                depth -= 1
                if depth == 0:
                    marks.append(at)
                    break
            elif self.code[at] == ";" and depth == 1:
                marks.append(at)
        if len(marks) != 3:
            return
        for child in children:
            place = self.span(child)
            if place is None:
                continue
            if place[0] > marks[2]:
                self.visit_body(child)
            elif marks[0] < place[0] < marks[1]:
                self.condition(child)
            elif place[0] < marks[0] and child.kind == cindex.CursorKind.DECL_STMT:
                for variable in child.get_children():
                    self.visit_variable(variable, True)

    def visit_variable(self, cursor, counts=False):
        if cursor.kind != cindex.CursorKind.VAR_DECL or cursor.storage_class == cindex.StorageClass.STATIC:
            return
        if cursor.type.get_canonical().kind in (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY):
            return
        for child in cursor.get_children():
            if child.kind.is_expression():
                if counts:
                    self.literal(child)
                self.visit_expression(child)

    def visit_return(self, span, children):
        if not children or span is None:
            return
        place = self.span(children[0])
        if place is None:
            return
        text = self.text(place)
        zero = self.zero()
        if re.fullmatch(r"NULL|0u?|WEIR_OK|true|false|\d+|-\d+|\(.*\)\{.*\}", text):
            special = (cindex.TypeKind.ENUM, cindex.TypeKind.POINTER, cindex.TypeKind.RECORD)
            if re.fullmatch(r"\d+|WEIR_OK|0u?|true|false", text) and self.result.get_canonical().kind not in special:
                other = OPPOSITE.get(text) or ("1" if text.startswith("0") else "0")
                self.add("return", span, f"return {text} -> {other}", self.around(place, f"({{}} ? {other} : (", "))"))
            return
        if self.result.get_canonical().kind != cindex.TypeKind.RECORD and not is_zero(children[0]):
            self.add("return", span, f"return {text} -> {zero}", self.around(place, f"({{}} ? {zero} : (", "))"))
        if text.split("(")[0] not in MESSAGE:
            self.visit_expression(children[0], True)

    def condition(self, cursor):
        """Makes the mutants of the condition of an if or a loop: negated, always true, always false."""
        place = self.span(cursor)
        if place is not None and not re.fullmatch(r"0|1|true|false", self.text(place)):
            text = self.text(place)
            self.add("condition", place, f"{text} -> !({text})", self.around(place, "(!(", ") != !{})"))
            self.add("condition", place, f"{text} -> 1", self.around(place, "({} || (", "))"))
            self.add("condition", place, f"{text} -> 0", self.around(place, "(!{} && (", "))"))
        self.visit_expression(cursor, False)

    def visit_expression(self, cursor, truth=False):
        K = cindex.CursorKind
        kind, children, span = cursor.kind, list(cursor.get_children()), self.span(cursor)
        if kind in (K.CXX_UNARY_EXPR, K.StmtExpr):
            return
        if span is not None and HINT.match(self.code, span[0], span[1] + 1):
            return
        if kind == K.CALL_EXPR and span is not None:
            if cursor.spelling in MESSAGE or self.code.startswith(("weiri_fail", "WEIRI_CONTAINER_OF", "offsetof"), span[0]):
                return
            self.exchange(cursor, span)
        elif kind == K.CONDITIONAL_OPERATOR and len(children) == 3:
            if self.span(children[0]) != span:  # otherwise a macro holds both, and an edit would meet the value too
                self.condition(children[0])
            children = children[1:]
        elif kind == K.BINARY_OPERATOR and len(children) == 2 and span is not None:
            self.binary(span, children, truth)
        elif kind == K.COMPOUND_ASSIGNMENT_OPERATOR and len(children) == 2:
            self.literal(children[1])
        elif kind == K.UNARY_OPERATOR and truth and span is not None and self.code[span[0]] == "!":
            text = self.text(span)
            self.add("condition", span, f"{text} -> !({text})", self.around(span, "(!(", ") != !{})"))
        for child in children:
            self.visit_expression(child, truth and kind in (K.PAREN_EXPR, K.UNEXPOSED_EXPR))

    def literal(self, cursor):
        """Makes the mutant in which a number that is compared or added is greater by one, or a truth value that is assigned the other."""
        while cursor.kind in (cindex.CursorKind.UNEXPOSED_EXPR, cindex.CursorKind.PAREN_EXPR):
            inner = list(cursor.get_children())
            if len(inner) != 1:
                return
            cursor = inner[0]
        place = self.span(cursor)
        if cursor.kind == cindex.CursorKind.INTEGER_LITERAL and place is not None and re.fullmatch(r"\d+[uUlL]*", self.text(place)):
            if cursor.type.get_canonical().kind != cindex.TypeKind.POINTER:
                self.add("bound", place, f"{self.line_part(place)}: {self.text(place)} + 1", self.around(place, "(", " + {})"))
        elif place is not None and self.text(place) in OPPOSITE:
            text, other = self.text(place), OPPOSITE[self.text(place)]
            self.add("bound", place, f"{self.line_part(place)}: {text} -> {other}", self.around(place, f"({{}} ? {other} : ", ")"))

    def line_part(self, span):
        """Returns a few characters on both sides of a span, so that the name of a change says which of two equal numbers it means."""
        return " ".join(self.code[max(self.code.rfind("\n", 0, span[0]) + 1, span[0] - 12):span[1] + 8].split("\n")[0].split())

    def binary(self, span, children, truth):
        left, right = self.span(children[0]), self.span(children[1])
        if left is None or right is None or left[1] > right[0]:
            return
        operator = self.code[left[1]:right[0]].strip()
        a, b, text = self.text(left), self.text(right), self.text(span)
        pointers = any(c.type.get_canonical().kind == cindex.TypeKind.POINTER for c in children)
        if operator in ("<", "<=", ">", ">="):
            other = operator[0] if len(operator) == 2 else operator + "="
            # The operands must be evaluated only once, so the mutant is a whole expression of its own.
            self.add("bound", span, f"{text} -> {a} {other} {b}", self.around(span, f"({{}} ? ({brace(a)} {other} {brace(b)}) : (", "))"))
        if operator in ("&&", "||"):
            neutral = "1" if operator == "&&" else "0"
            for place, part in ((left, a), (right, b)):
                wrap = ("({} || (", "))") if operator == "&&" else ("(!{} && (", "))")
                self.add("condition", place, f"{part} -> {neutral} in {operator}", self.around(place, *wrap))
        if operator in ("==", "!=", "&&", "||", "<", "<=", ">", ">=") and truth:
            self.add("condition", span, f"{text} -> !({text})", self.around(span, "(!(", ") != !{})"))
        if operator in ("+", "-", "<", "<=", ">", ">=", "==", "!=", "%") and not (pointers and operator in ("==", "!=")):
            self.literal(children[0])
            self.literal(children[1])
        if operator == "=" and not pointers:
            self.literal(children[1])

    def argument(self, cursor):
        """Returns the span of an argument if it extends from comma to comma. One that ends inside a macro has no span of its own."""
        place = self.span(cursor)
        if place is None or not re.search(r"[,(]\s*$", self.code[:place[0]][-80:]):
            return None
        return place if re.match(r"\s*[,)]", self.code[place[1]:place[1] + 80]) else None

    def exchange(self, cursor, span):
        arguments = list(cursor.get_arguments())
        if cursor.spelling in (*COMMUTES, "__builtin_expect"):
            return
        called = cursor.referenced.type if cursor.referenced is not None else None
        if called is not None and called.kind == cindex.TypeKind.FUNCTIONPROTO and called.is_function_variadic():
            return
        places = [self.argument(a) for a in arguments]
        for i in range(len(arguments)):
            for j in range(i + 1, len(arguments)):
                if places[i] is None or places[j] is None:
                    continue
                if not span[0] < places[i][0] < places[i][1] < places[j][0] < places[j][1] < span[1]:
                    continue
                a, b = self.text(places[i]), self.text(places[j])
                if a == b or plain_type(arguments[i]) != plain_type(arguments[j]):
                    continue
                whole = self.text((span[0], places[i][0])) + " " + b + " " + self.text((places[i][1], places[j][0])) + " " + a + " " + \
                    self.text((places[j][1], span[1]))
                change = f"{self.text(span)[:120]}: {a} and {b} exchanged"
                self.add("exchange", span, change, self.around(span, f"({{}} ? ({brace(whole)}) : (", "))"))


def cindex_ready():
    lib = cindex.conf.lib
    lib.clang_getFileLocation.argtypes = [cindex.SourceLocation, ctypes.POINTER(ctypes.c_void_p), *[ctypes.POINTER(ctypes.c_uint)] * 3]


def file_offset(location):
    offset = ctypes.c_uint()
    cindex.conf.lib.clang_getFileLocation(location, None, None, None, ctypes.byref(offset))
    return offset.value


def plain_type(cursor):
    spelling = cursor.type.get_canonical().spelling.replace("const ", "").replace(" const", "")
    return spelling


def brace(text):
    """Doubles the braces of a text, for str.format()."""
    return text.replace("{", "{{").replace("}", "}}")


def is_zero(cursor):
    """Returns whether the cursor is an enumerator with the value 0."""
    while cursor.kind in (cindex.CursorKind.UNEXPOSED_EXPR, cindex.CursorKind.PAREN_EXPR):
        inner = list(cursor.get_children())
        if len(inner) != 1:
            return False
        cursor = inner[0]
    named = cursor.referenced if cursor.kind == cindex.CursorKind.DECL_REF_EXPR else None
    return named is not None and named.kind == cindex.CursorKind.ENUM_CONSTANT_DECL and named.enum_value == 0


def plain(text):
    return text.replace("{{", "{").replace("}}", "}")


def balanced(text):
    closing = {")": "(", "]": "[", "}": "{"}
    stack = []
    for c in re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', "", text):
        if c in "([{":
            stack.append(c)
        elif c in closing and (not stack or stack.pop() != closing[c]):
            return False
    return not stack and text.count('"') % 2 == 0


def blank_comments(source):
    """Replaces comments by spaces, so that offsets and lines stay."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group().startswith("/*") else m.group(), source)


def layer_of(file):
    """The folder that holds it, as seen from lib/; of a public header, include/weir."""
    return str(pathlib.PurePath(file).parent).removeprefix("lib/")


def sources_of(root):
    """Returns the sources of all layers, and the headers whose code programs contain; a file outside of them belongs to the build."""
    paths = pathlib.Path(root).glob("lib/*/*/*.[ch]")
    headers = [name for name in HEADERS if (pathlib.Path(root) / name).is_file()]
    return sorted([*headers, *(str(path.relative_to(root)) for path in paths if path.name not in ("mutant.c", "mutant.h"))])


def all_mutants(root, files=None):
    for file in files or sources_of(root):
        yield from told_apart(Unit(pathlib.Path(root), file).found, key_of)


def rank(seed, m):
    return hashlib.sha256("\0".join((str(seed), *key_of(m))).encode()).digest()


def sample(mutants, seed, count, least, known=frozenset()):
    """
    Draws about `count` mutants: from each layer in proportion to its mutants, but at least `least`, and equally many of each kind as long
    as there are any. Each mutant has a rank of its own, so a change of one file hardly changes what is drawn from the others. Mutants
    whose keys are known come first, all of them, so that a file that moves keeps its own.
    """
    layers = collections.defaultdict(list)
    for m in mutants:
        layers[m.layer].append(m)
    total = sum(map(len, layers.values()))
    chosen = []
    for name, those in sorted(layers.items()):
        wanted = min(len(those), max(least, round(count * len(those) / total)))
        drawn, left = [], collections.defaultdict(list)
        for m in sorted(those, key=lambda m: rank(seed, m)):
            (drawn if key_of(m) in known else left[m.kind]).append(m)
        so_many = collections.Counter(m.kind for m in drawn)
        while len(drawn) < wanted:
            kind = min((kind for kind in KINDS if left[kind]), key=lambda kind: so_many[kind])
            drawn.append(left[kind].pop(0))
            so_many[kind] += 1
        chosen += drawn
    return chosen


def numbered(mutants):
    """Gives each mutant a number that depends on the mutant itself: a change of one file leaves the numbers of the others."""
    taken, numbers = {0}, {}
    for m in sorted(mutants, key=key_of):
        number = int.from_bytes(rank("number", m)[:2], "big")
        while number in taken:
            number = (number + 1) % 65536
        taken.add(number)
        numbers[key_of(m)] = number
    return numbers


def rewritten(source, mutants, numbers):
    """Returns the source with all of these mutants in it."""
    edits = []
    for m in mutants:
        for offset, rank_, size, depth, text in m.edits:
            edits.append((offset, rank_, size, depth, numbers[key_of(m)], text.format(f"WEIRI_MUTANT({numbers[key_of(m)]})")))
    edits.sort(key=order_of)
    out, at = [], 0
    for offset, *_, text in edits:
        out += [source[at:offset], text.encode()]
        at = offset
    return b"".join([*out, source[at:]])


def order_of(edit):
    """
    Returns the key by which edits are sorted. At one offset, wrappings that end come first, the smallest of them first. Then come those
    that begin, the largest first. Wrappings of one span nest.
    """
    offset, begins, size, depth, number, _ = edit
    return (offset, begins, size, depth, number if begins else -number)
