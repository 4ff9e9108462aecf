"""Truth values that are not declared bool, found in the syntax trees that clang makes of the library's files.

An integer is a truth value if all that it ever gets is one: 0 or 1, a comparison, a negation, a bool, or another truth value. So the
question is answered for all functions, parameters, variables and fields together: each begins as a candidate, and one that gets
something else takes with it those that get their values from it. Two places that pointers connect, as an argument &moved and the
parameter that it becomes, or a function and the pointer to it, are one. What is used as a number is no truth value: it is an operand
of arithmetic, an index, or is compared with a number. Foreign signatures stay as they are: of public calls, and of functions whose
address a foreign function gets. Atomic types stay, too.
"""
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "mutation"))

from meaning import ARGUMENTS, blank_comments, cindex, cindex_ready, file_offset, mpi_includes  # noqa: E402: found by the line above

K, T = cindex.CursorKind, cindex.TypeKind
INTEGERS = {T.INT, T.UINT, T.UCHAR, T.SCHAR, T.USHORT, T.SHORT}
INDIRECT = {T.POINTER, T.CONSTANTARRAY, T.INCOMPLETEARRAY}
TRUTHS = ("==", "!=", "<", ">", "<=", ">=", "&&", "||")
NUMBERS = ("+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=")
MOST_PARAMETERS = 16

# What is declared at a place: (kind, the place, the number of the parameter). The kind is "result" or "value".
Truth = collections.namedtuple("Truth", "path line name type")


def pointee(kind):
    """Returns the type behind all pointers and arrays."""
    kind = kind.get_canonical()
    while kind.kind in INDIRECT:
        kind = (kind.get_pointee() if kind.kind == T.POINTER else kind.element_type).get_canonical()
    return kind


def is_integer(kind):
    return kind.get_canonical().kind in INTEGERS


def bare(cursor):
    """Returns the expression without its parentheses and implicit casts."""
    while cursor.kind in (K.UNEXPOSED_EXPR, K.PAREN_EXPR):
        inner = [one for one in cursor.get_children() if one.kind.is_expression()]
        if len(inner) != 1:
            break
        cursor = inner[0]
    return cursor


class Truths:
    def __init__(self, root):
        self.root, self.lib = root, f"{root / 'lib'}/"
        self.codes = {}
        self.declared = {}                        # node: Truth
        self.sources = collections.defaultdict(list)  # node: for each value that it gets, the nodes of which that value is made, or None
        self.same = collections.defaultdict(set)  # node: nodes that pointers connect with it
        self.others = set()                       # nodes that are no truth values
        self.written = set()                      # (place, text): a bool gets 0 or 1
        self.seen = set()
        self.function = None
        cindex_ready()

    # -- places in the text ----------------------------------------------------------------------------------------------------------

    def is_mine(self, cursor):
        return cursor.location.file is not None and cursor.location.file.name.startswith(self.lib)

    def place(self, cursor):
        cursor = cursor.canonical
        return cursor.location.file.name if cursor.location.file else "", file_offset(cursor.location)

    def code(self, file):
        if file not in self.codes:
            self.codes[file] = blank_comments(pathlib.Path(file).read_bytes().decode("latin-1"))
        return self.codes[file]

    def span(self, cursor):
        lib = cindex.conf.lib
        return file_offset(lib.clang_getRangeStart(cursor.extent)), file_offset(lib.clang_getRangeEnd(cursor.extent))

    def between(self, cursor, start, end):
        return self.code(cursor.location.file.name)[start:end].strip() if self.is_mine(cursor) and start <= end else ""

    def text(self, cursor):
        return self.between(cursor, *self.span(cursor))

    def operator(self, cursor):
        """Returns the operator of an expression, or "" if it stands in a macro."""
        parts = [self.span(one) for one in cursor.get_children()]
        if len(parts) == 2:
            return self.between(cursor, parts[0][1], parts[1][0])
        start, end = self.span(cursor)
        return (self.between(cursor, start, parts[0][0]) or self.between(cursor, parts[0][1], end)) if parts else ""

    # -- nodes -----------------------------------------------------------------------------------------------------------------------

    def signature(self, kind, cursor):
        """Returns the place that stands for the type of a pointer to a function: its typedef, or what is declared with it."""
        if pointee(kind).kind not in (T.FUNCTIONPROTO, T.FUNCTIONNOPROTO):
            return None
        while kind.kind != T.TYPEDEF:
            if kind.kind == T.ELABORATED:
                kind = kind.get_named_type()
            elif kind.kind in INDIRECT:
                kind = kind.get_pointee() if kind.kind == T.POINTER else kind.element_type
            else:
                return self.place(cursor)
        return self.place(kind.get_declaration())

    def value(self, cursor):
        """Returns the node of a variable, a field or a parameter. That of a pointer or an array is the node of what is behind it."""
        function = cursor.semantic_parent if cursor.kind == K.PARM_DECL else None
        if function is not None and function.kind == K.FUNCTION_DECL:
            for number, one in enumerate(function.get_arguments()):
                if one.location == cursor.location:
                    return "value", self.place(function), number
        return "value", self.place(cursor), None

    def declare(self, node, cursor, kind):
        if is_integer(pointee(kind)):
            path = pathlib.Path(cursor.location.file.name if cursor.location.file else "")
            self.declared.setdefault(node, Truth(path, cursor.location.line, cursor.spelling, kind.spelling))

    def declare_pointer(self, cursor, kind):
        """Declares the result and the parameters of a type of functions."""
        place = self.place(cursor)
        if self.signature(kind, cursor) != place and (cursor.kind != K.TYPEDEF_DECL or pointee(kind).kind != T.FUNCTIONPROTO):
            return
        self.declare(("result", place, None), cursor, pointee(kind).get_result())
        parameters = [one for one in cursor.get_children() if one.kind == K.PARM_DECL]
        for number, one in enumerate(parameters):
            self.declare(("value", place, number), one, one.type)

    def foreign(self, place):
        self.others.add(("result", place, None))
        self.others.update(("value", place, number) for number in range(MOST_PARAMETERS))

    def connect(self, one, other):
        if one != other:
            self.same[one].add(other)
            self.same[other].add(one)

    # -- declarations ----------------------------------------------------------------------------------------------------------------

    def read(self, path):
        arguments = [one.replace("-I", f"-I{self.root}/").replace("LEVEL=0", "LEVEL=3") for one in ARGUMENTS] + mpi_includes()
        unit = cindex.Index.create().parse(str(path), arguments)
        for cursor in unit.cursor.get_children():
            if not self.is_mine(cursor):
                continue
            key = (cursor.location.file.name, cursor.extent.start.offset, cursor.location.offset)
            if key not in self.seen:
                self.seen.add(key)
                self.outermost(cursor)

    def outermost(self, cursor):
        if cursor.kind == K.FUNCTION_DECL:
            place = self.place(cursor)
            if not self.is_mine(cursor.canonical):
                self.foreign(place)
            self.declare(("result", place, None), cursor, cursor.result_type)
            for number, one in enumerate(cursor.get_arguments()):
                self.declare(("value", place, number), one, one.type)
                self.declare_pointer(one, one.type)
            self.function = cursor
            for one in cursor.get_children():
                if one.kind == K.COMPOUND_STMT:
                    self.walk(one)
        elif cursor.kind in (K.STRUCT_DECL, K.UNION_DECL):
            self.struct(cursor)
        elif cursor.kind == K.TYPEDEF_DECL:
            self.declare_pointer(cursor, cursor.underlying_typedef_type)
        elif cursor.kind == K.VAR_DECL:
            self.variable(cursor)

    def struct(self, cursor):
        for one in cursor.get_children():
            if one.kind == K.FIELD_DECL:
                if one.is_bitfield():
                    self.others.add(self.value(one))
                self.declare(self.value(one), one, one.type)
                self.declare_pointer(one, one.type)
                self.struct(one)
            elif one.kind in (K.STRUCT_DECL, K.UNION_DECL):
                self.struct(one)

    def variable(self, cursor):
        if self.is_mine(cursor):
            self.declare(self.value(cursor), cursor, cursor.type)
            self.declare_pointer(cursor, cursor.type)
            start = file_offset(cursor.location)
            inner = [one for one in cursor.get_children() if one.kind.is_expression()]
            if inner and "=" in self.between(cursor, start, self.span(inner[-1])[0]):
                self.give(cursor, inner[-1])
                self.walk(inner[-1])

    # -- expressions -----------------------------------------------------------------------------------------------------------------

    def target(self, cursor):
        """Returns the node of the object that an expression names, or None."""
        cursor = bare(cursor)
        inner = list(cursor.get_children())
        if cursor.kind in (K.DECL_REF_EXPR, K.MEMBER_REF_EXPR):
            named = cursor.referenced
            is_object = named is not None and named.kind in (K.VAR_DECL, K.PARM_DECL, K.FIELD_DECL) and self.is_mine(named)
            return self.value(named) if is_object else None
        if cursor.kind == K.ARRAY_SUBSCRIPT_EXPR or cursor.kind == K.UNARY_OPERATOR and self.operator(cursor) in ("*", "&"):
            return self.target(inner[0]) if inner else None
        return None

    def called(self, cursor):
        """Returns the place of the signature of the function that is called, and what names it."""
        inner = list(cursor.get_children())
        named = bare(inner[0]) if inner else None
        while named is not None and named.kind in (K.UNARY_OPERATOR, K.ARRAY_SUBSCRIPT_EXPR):
            named = bare(next(named.get_children()))
        named = named.referenced if named is not None else None
        if named is None:
            return "", None
        place = self.place(named) if named.kind == K.FUNCTION_DECL else self.signature(named.type, named)
        return place, named

    def made_of(self, cursor):
        """Returns the nodes whose values an expression may have, or None if it is no truth value."""
        inner = bare(cursor)
        if T.BOOL in (cursor.type.get_canonical().kind, inner.type.get_canonical().kind):
            return set()
        parts = list(inner.get_children())
        operator = self.operator(inner) if inner.kind in (K.BINARY_OPERATOR, K.UNARY_OPERATOR) else ""
        if inner.kind == K.INTEGER_LITERAL:
            return set() if self.text(inner) in ("0", "1", "true", "false") else None
        if operator in TRUTHS or operator == "!":
            return set()
        if inner.kind == K.CONDITIONAL_OPERATOR or operator in ("&", "|", "^") and len(parts) == 2:
            both = [self.made_of(one) for one in parts[-2:]]
            return None if None in both else both[0] | both[1]
        if operator in ("=", ","):
            return self.made_of(parts[1])
        if inner.kind == K.CALL_EXPR:
            if inner.spelling == "__builtin_expect":
                return self.made_of(parts[1])
            place, _ = self.called(inner)
            return {("result", place, None)} if place and place[0].startswith(self.lib) else None
        node = self.target(inner)
        return {node} if node is not None and is_integer(inner.type) else None

    def written_as(self, cursor):
        """Notes each 0 or 1 that becomes the value of a bool."""
        inner = bare(cursor)
        if inner.kind == K.INTEGER_LITERAL and self.text(inner) in ("0", "1"):
            self.written.add((inner.location.file.name, inner.location.line, self.text(inner)))
        elif inner.kind == K.CONDITIONAL_OPERATOR:
            for one in list(inner.get_children())[1:]:
                self.written_as(one)

    def give(self, declaration, cursor):
        """Notes that what was declared gets the value of an expression."""
        if bare(cursor).kind == K.INIT_LIST_EXPR:
            self.give_list(declaration.type, declaration, bare(cursor))
        else:
            node = self.value(declaration) if self.is_mine(declaration) else None
            self.give_value(node, declaration.type, self.signature(declaration.type, declaration), cursor)

    def give_value(self, node, kind, signature, cursor):
        inner = bare(cursor)
        if signature is not None:
            self.give_function(node, kind, signature, inner)
        elif kind.get_canonical().kind == T.BOOL:
            self.written_as(cursor)
        elif node is not None and is_integer(kind):
            self.sources[node].append(self.made_of(cursor))
        elif node is not None and kind.get_canonical().kind in INDIRECT and self.target(inner) is not None:
            self.connect(node, self.target(inner))

    def give_function(self, node, kind, signature, inner):
        if inner.kind == K.CONDITIONAL_OPERATOR:
            for one in list(inner.get_children())[1:]:
                self.give_value(node, kind, signature, one)
            return
        if inner.kind == K.UNARY_OPERATOR:
            inner = bare(next(inner.get_children()))
        named = inner.referenced if inner.kind in (K.DECL_REF_EXPR, K.MEMBER_REF_EXPR) else None
        if named is None:
            return
        place = self.place(named) if named.kind == K.FUNCTION_DECL else self.signature(named.type, named)
        if place is not None and not signature[0].startswith(self.lib):
            self.foreign(place)
        elif place is not None:
            self.connect(("result", signature, None), ("result", place, None))
            for number in range(MOST_PARAMETERS):
                self.connect(("value", signature, number), ("value", place, number))

    def give_list(self, kind, declaration, cursor):
        kind = kind.get_canonical()
        if kind.kind == T.RECORD:
            fields, number = list(kind.get_fields()), 0
            names = [one.spelling for one in fields]
            for one in cursor.get_children():
                inner = list(one.get_children()) if one.kind == K.UNEXPOSED_EXPR else []
                marks = [part.referenced for part in inner if part.kind == K.MEMBER_REF]
                if marks:  # .field = value
                    number = names.index(marks[0].spelling) if marks[0].spelling in names else number
                    self.give(marks[-1], inner[-1])
                elif number < len(fields):
                    self.give(fields[number], one)
                number += 1
        elif kind.kind in INDIRECT and declaration is not None:
            for one in cursor.get_children():
                inner = bare(one)
                if inner.kind == K.UNEXPOSED_EXPR:  # [index] = value
                    inner = bare(list(inner.get_children())[-1])
                if inner.kind == K.INIT_LIST_EXPR:
                    self.give_list(kind.element_type, declaration, inner)
                else:
                    self.give_value(self.value(declaration), kind.element_type, self.signature(declaration.type, declaration), inner)

    # -- statements ------------------------------------------------------------------------------------------------------------------

    def is_number(self, cursor):
        """Notes that an expression is used as a number. The result of a call may be: counts add truth values."""
        self.others.update(node for node in self.made_of(cursor) or () if node[0] == "value")

    def walk(self, cursor):
        kind, inner = cursor.kind, list(cursor.get_children())
        if kind == K.DECL_STMT:
            for one in inner:
                if one.kind == K.VAR_DECL:
                    self.variable(one)
                elif one.kind in (K.STRUCT_DECL, K.UNION_DECL):
                    self.struct(one)
            return
        if kind == K.RETURN_STMT and inner:
            self.give_value(("result", self.place(self.function), None), self.function.result_type, None, inner[0])
        elif kind == K.BINARY_OPERATOR:
            self.walk_binary(inner, self.operator(cursor))
        elif kind == K.COMPOUND_ASSIGNMENT_OPERATOR and is_integer(inner[0].type):
            node = self.target(inner[0])
            if node is not None and self.operator(cursor) in ("|=", "&=", "^="):
                self.sources[node].append(self.made_of(inner[1]))
            else:
                self.others.add(node)
        elif kind == K.UNARY_OPERATOR and self.operator(cursor) in ("++", "--", "-", "~"):
            self.is_number(inner[0])
        elif kind == K.ARRAY_SUBSCRIPT_EXPR:
            self.is_number(inner[1])
        elif kind == K.SWITCH_STMT:
            self.is_number(inner[0])
        elif kind == K.CALL_EXPR:
            self.walk_call(cursor)
        elif kind == K.COMPOUND_LITERAL_EXPR:
            self.give_list(cursor.type, None, inner[-1])
        elif kind == K.UNEXPOSED_EXPR and len(inner) > 1:  # an atomic operation
            self.others.update(self.target(one) for one in inner)
        for one in inner:
            self.walk(one)

    def walk_binary(self, inner, operator):
        if operator == "=":
            left = bare(inner[0])
            named = left.referenced if left.kind in (K.DECL_REF_EXPR, K.MEMBER_REF_EXPR) else None
            signature = self.signature(named.type, named) if named is not None else None
            self.give_value(self.target(left), inner[0].type, signature, inner[1])
        elif operator in NUMBERS or operator in ("==", "!=") and None in [self.made_of(one) for one in inner]:
            for one in inner:
                self.is_number(one)

    def walk_call(self, cursor):
        place, named = self.called(cursor)
        arguments = list(cursor.get_arguments())
        if not place or not place[0].startswith(self.lib):
            for one in arguments:  # What a foreign call gets a pointer to may become anything.
                inner = bare(one)
                self.others.add(self.target(inner))
                if inner.kind == K.DECL_REF_EXPR and inner.referenced is not None and inner.referenced.kind == K.FUNCTION_DECL:
                    self.foreign(self.place(inner.referenced))
            return
        kinds = pointee(named.type)
        kinds = list(kinds.argument_types()) if kinds.kind == T.FUNCTIONPROTO else []
        parameters = list(named.get_arguments()) if named.kind == K.FUNCTION_DECL else []
        for number, (kind, one) in enumerate(zip(kinds, arguments)):
            signature = self.signature(parameters[number].type, parameters[number]) if number < len(parameters) else None
            self.give_value(("value", place, number), kind, signature, one)

    # -- answers ---------------------------------------------------------------------------------------------------------------------

    def found(self):
        """Returns the truth values that are declared as something else."""
        users, wrong = collections.defaultdict(set), set(self.others)
        for node, sources in self.sources.items():
            for made_of in sources:
                if made_of is None:
                    wrong.add(node)
                for source in made_of or ():
                    users[source].add(node)
        wrong.update(node for node in [*users, *self.same] if node not in self.declared)
        waiting = list(wrong)
        while waiting:
            node = waiting.pop()
            more = (users[node] | self.same[node]) - wrong
            wrong |= more
            waiting += more
        for node in set(self.declared) - wrong:
            if self.gets_any(node):
                yield self.declared[node]

    def gets_any(self, node):
        """Returns whether a node, or one that pointers connect with it, gets a value at all."""
        group, waiting = {node}, [node]
        while waiting:
            more = self.same[waiting.pop()] - group
            group |= more
            waiting += more
        return any(self.sources[one] for one in group)


def truths_of(root):
    """Returns the truth values of the library that are not declared bool, and the places (path, line, text) where a bool gets 0 or 1."""
    truths = Truths(root)
    for path in sorted((root / "lib").glob("*/*/*.c")):
        truths.read(path)
    return sorted(truths.found()), sorted((pathlib.Path(file), line, text) for file, line, text in truths.written)
