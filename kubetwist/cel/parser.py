"""Recursive descent parser of expressions, which expands macros while parsing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import define

from kubetwist.cel import lexer, literals
from kubetwist.cel.ast import (
    Builder,
    Call,
    Entry,
    Expr,
    Ident,
    ListExpr,
    Literal,
    Macro,
    MacroError,
    MapExpr,
    Select,
    StructExpr,
)
from kubetwist.cel.errors import Issue
from kubetwist.cel.lexer import BYTES, EOF, ESCAPED, FLOAT, IDENTIFIER, INT, STRING, UINT, Token
from kubetwist.cel.source import NO_POSITION, Source

MAX_CODE_POINTS: Final = 100_000
MAX_DEPTH: Final = 250
#: An expression of the maximum size has fewer nodes, but nested macros that copy their target multiply them.
MAX_NODES: Final = 150_000

_RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "package", "namespace", "null", "return", "true", "var", "void", "while",
    }
)  # fmt: skip

#: Tokens that begin an operand.
_OPERAND: Final = frozenset(
    {"[", "{", "(", ".", "-", "!", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER}
)
_ARGUMENTS: Final = _OPERAND | {")"}
_INDEX: Final = _OPERAND | {"?"}
_ELEMENTS: Final = _OPERAND | {"]", ",", "?"}
_ENTRIES: Final = _OPERAND | {"}", ",", "?"}
_NAMES: Final = frozenset({IDENTIFIER, ESCAPED})
_FIELD: Final = _NAMES | {"?"}
_FIELDS: Final = _FIELD | {"}", ","}

_RELATION: Final = 1
_PRECEDENCE: Final = {
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), _RELATION),
    "+": 2, "-": 2, "*": 3, "/": 3, "%": 3,
}  # fmt: skip
_FUNCTIONS: Final = {operator: f"_{operator}_" for operator in _PRECEDENCE if operator != "in"} | {"in": "@in"}
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


#: Tokens that may follow any operand; and, by context, tokens that end an expression.
_OPERATORS: Final = frozenset({"?", ".", "[", "&&", "||", *_PRECEDENCE})
_TEXT_END: Final = frozenset({EOF})
_COLON: Final = frozenset({":"})
_BRACKET: Final = frozenset({"]"})
_PARENTHESIS: Final = frozenset({")"})
_ARGUMENT_END: Final = frozenset({")", ","})
_ELEMENT_END: Final = frozenset({"]", ","})
_ENTRY_END: Final = frozenset({"}", ","})

MacroKey = tuple[str, bool, int | None]


class SyntaxFailure(Exception):
    """A syntax error, whose issue is already recorded."""


@define
class Parsed:
    """
    The syntax tree of an expression.

    @ivar offsets: The offsets of the nodes in the text, by node id.
    @ivar depth: The approximate depth in nodes.
    """

    root: Expr
    offsets: dict[int, int]
    depth: int


def macro_table(macros: Sequence[Macro]) -> dict[MacroKey, Macro]:
    """Return macros by the name, kind and argument count of the calls that they expand."""
    return {(macro.name, macro.member, macro.count): macro for macro in macros}


class Parser:
    """Parser of one expression."""

    def __init__(
        self, source: Source, macros: Mapping[MacroKey, Macro], optionals: bool = True, escapes: bool = False
    ) -> None:
        self.source = source
        self.issues: list[Issue] = []
        self._macros = macros
        self._optionals = optionals
        self._escapes = escapes
        self._offsets: dict[int, int] = {}
        self._depths: dict[int, int] = {}
        self._id = 0
        self._tokens: list[Token] = []
        self._position = 0
        self._nesting = 0
        self._ends: list[frozenset[str]] = []

    def parse(self) -> Parsed | None:
        """
        Parse the expression.

        @return: C{None} if there are L{issues}.
        """
        size = len(self.source.text)
        if size > MAX_CODE_POINTS:
            self._report_without_position(
                f"expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"
            )
            return None
        self._tokens, errors = lexer.tokenize(self.source.text)
        for offset, message in errors:
            self._report(offset, f"Syntax error: {message}")
        try:
            root = self._expression_until(_TEXT_END)
            self._expect_end()
        except SyntaxFailure:
            return None
        depth = self._depths.get(root.id, 0)
        if depth > MAX_DEPTH:
            self._report_without_position("max recursion depth exceeded")
        return None if self.issues else Parsed(root, self._offsets, depth)

    # Errors

    def _report(self, offset: int, message: str) -> None:
        self.issues.append(Issue(message, *self.source.position(offset)))

    def _report_without_position(self, message: str) -> None:
        self.issues.append(Issue(message, *NO_POSITION))

    def _report_semantic_error(self, offset: int, message: str) -> Expr:
        """Record an error that is not a syntax error, and return a node to continue with."""
        self._report(offset, message)
        return Literal(self._new(offset), None)

    def _mismatch(self, kinds: frozenset[str] | set[str]) -> SyntaxFailure:
        token = self._tokens[self._position]
        expected = lexer.expected(kinds)
        self._report(token.offset, f"Syntax error: mismatched input '{token.text}' expecting {expected}")
        return SyntaxFailure()

    def _sync(self, kinds: frozenset[str]) -> None:
        """Require that the next token has one of some kinds; one extraneous token is reported and skipped."""
        token = self._tokens[self._position]
        if token.kind in kinds:
            return
        if token.kind != EOF and self._tokens[self._position + 1].kind in kinds:
            expected = lexer.expected(kinds)
            self._report(token.offset, f"Syntax error: extraneous input '{token.text}' expecting {expected}")
            self._position += 1
            return
        failure = self._mismatch(kinds)
        if kinds is _OPERAND and token.kind != EOF and self._tokens[self._position + 1].kind == EOF:
            # After the token is skipped, nothing remains.
            self._position += 1
            self._mismatch(kinds)
        raise failure

    def _expect(self, kind: str, closing: bool = False) -> Token:
        """
        Consume a token of a kind; one missing or extraneous token is reported, and parsing continues.

        @param closing: Whether the token ends an operand; otherwise an operand follows.
        """
        token = self._tokens[self._position]
        if token.kind == kind:
            self._position += 1
            return token
        if token.kind != EOF and self._tokens[self._position + 1].kind == kind:
            expected = lexer.expected({kind})
            self._report(token.offset, f"Syntax error: extraneous input '{token.text}' expecting {expected}")
            self._position += 2
            return self._tokens[self._position - 1]
        if token.kind in (self._following() if closing else _OPERAND):
            self._report(token.offset, f"Syntax error: missing '{kind}' at '{token.text}'")
            return Token(kind, kind, token.offset)
        raise self._mismatch({kind})

    def _expect_end(self) -> None:
        token = self._tokens[self._position]
        if token.kind == EOF:
            return
        error_kind = "extraneous" if self._tokens[self._position + 1].kind == EOF else "mismatched"
        self._report(token.offset, f"Syntax error: {error_kind} input '{token.text}' expecting <EOF>")
        raise SyntaxFailure

    # Nodes

    def _new(self, offset: int) -> int:
        self._id += 1
        if self._id > MAX_NODES:
            self._report_without_position(f"expression node count exceeds limit: {MAX_NODES}")
            raise SyntaxFailure
        self._offsets[self._id] = offset
        return self._id

    def _set_depth(self, expr: Expr, *children: Expr, by: int = 1) -> Expr:
        """Store the depth of an expression, as cel-go counts it."""
        self._depths[expr.id] = by + max((self._depths.get(child.id, 0) for child in children), default=0)
        return expr

    def _call(self, offset: int, function: str, target: Expr | None, args: list[Expr]) -> Expr:
        """Return a call, or the expansion of the macro that matches it."""
        node = self._new(offset)
        member = target is not None
        macros = self._macros
        macro = macros.get((function, member, len(args))) or macros.get((function, member, None))
        if macro is not None:
            builder = Builder(lambda: self._new(offset), lambda of: self._new(self._offsets[of]))
            try:
                expanded = macro.expand(builder, target, args)
            except MacroError as error:
                return self._report_semantic_error(self._offsets[error.expr.id], error.message)
            if expanded is not None:
                return expanded
        return Call(node, function, target, args)

    # The grammar

    def _following(self) -> frozenset[str]:
        """Return the tokens that may follow a complete operand in the current context."""
        return _OPERATORS | self._ends[-1]

    def _expression_until(self, ends: frozenset[str]) -> Expr:
        """Parse an expression that ends before one of some tokens."""
        self._ends.append(ends)
        expr = self._expression()
        self._ends.pop()
        return expr

    def _expression(self) -> Expr:
        """Parse C{a ? b : c} and operators of higher precedence."""
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            self._report_without_position(f"expression recursion limit exceeded: {MAX_DEPTH}")
            raise SyntaxFailure
        condition = self._logical("||")
        if self._tokens[self._position].kind == "?":
            node = self._new(self._tokens[self._position].offset)
            self._position += 1
            self._ends.append(_COLON)
            true = self._logical("||")
            self._ends.pop()
            self._expect(":")
            false = self._expression()
            condition = self._set_depth(Call(node, "_?_:_", None, [condition, true, false]), condition, true, false)
        self._nesting -= 1
        return condition

    def _logical(self, operator: str) -> Expr:
        """Parse C{a || b || c} and C{a && b && c}, as balanced trees."""
        below: Callable[[], Expr] = (lambda: self._logical("&&")) if operator == "||" else self._binary
        terms = [below()]
        nodes: list[int] = []
        while self._tokens[self._position].kind == operator:
            offset = self._tokens[self._position].offset
            self._position += 1
            terms.append(below())
            nodes.append(self._new(offset))
        return self._balanced(f"_{operator}_", terms, nodes)

    def _balanced(self, function: str, terms: Sequence[Expr], nodes: Sequence[int]) -> Expr:
        if not nodes:
            return terms[0]
        middle = len(nodes) // 2
        left = self._balanced(function, terms[: middle + 1], nodes[:middle])
        right = self._balanced(function, terms[middle + 1 :], nodes[middle + 1 :])
        return self._set_depth(Call(nodes[middle], function, None, [left, right]), left, right, by=0)

    def _binary(self, min_precedence: int = _RELATION) -> Expr:
        """Parse left-associative binary operators of at least a precedence."""
        left = self._unary()
        while True:
            token = self._tokens[self._position]
            precedence = _PRECEDENCE.get(token.kind, 0)
            if precedence < min_precedence:
                return left
            self._position += 1
            node = self._new(token.offset)
            right = self._binary(precedence + 1)
            left = self._set_depth(Call(node, _FUNCTIONS[token.kind], None, [left, right]), left, right)

    def _unary(self) -> Expr:
        """Parse any number of C{!} or C{-} before an operand."""
        self._sync(_OPERAND)
        token = self._tokens[self._position]
        kind = token.kind
        if kind not in ("!", "-"):
            return self._member()
        count = 1
        while self._tokens[self._position + count].kind == kind:
            count += 1
        following = self._tokens[self._position + count]
        if kind == "-" and following.kind in (INT, FLOAT):
            # The last minus is the sign of a number.
            if count == 1:
                return self._member()
            count -= 1
        self._position += count
        self._check_operand(kind, following)
        node = self._new(token.offset)
        operand = self._member()
        if count % 2 == 0:
            return operand
        return self._set_depth(Call(node, f"{kind}_", None, [operand]), operand, by=0)

    def _check_operand(self, kind: str, token: Token) -> None:
        """Report an invalid operand of C{!} or C{-}."""
        after = self._tokens[self._position + 1] if token.kind == "-" else token
        if token.kind in _OPERAND and token.kind != "!" and (token.kind != "-" or after.kind in (INT, FLOAT)):
            return
        if kind == "!" and token.kind not in _OPERAND:
            expected = lexer.expected(_OPERAND)
            self._report(token.offset, f"Syntax error: extraneous input '{token.text}' expecting {expected}")
            raise SyntaxFailure
        if kind == "-":
            consumed = "-" if token.kind == EOF else "-" + token.text
            self._report(token.offset, f"Syntax error: no viable alternative at input '{consumed}'")
            if token.kind == EOF:
                self._mismatch(_OPERAND)
        else:
            self._report(token.offset, f"Syntax error: no viable alternative at input '{token.text}{after.text}'")
        raise SyntaxFailure

    def _member(self) -> Expr:
        """Parse an operand with the selections, calls and indices that follow."""
        expr = self._primary()
        while True:
            token = self._tokens[self._position]
            if token.kind == ".":
                expr = self._select(expr, token)
            elif token.kind == "[":
                expr = self._index(expr, token)
            else:
                return expr

    def _select(self, operand: Expr, dot: Token) -> Expr:
        self._position += 1
        token = self._tokens[self._position]
        optional = token.kind == "?"
        if optional:
            self._position += 1
            self._sync(_NAMES)
            token = self._tokens[self._position]
        elif token.kind not in _NAMES:
            raise self._not_a_field(token)
        self._position += 1
        if not optional and token.kind == IDENTIFIER and self._tokens[self._position].kind == "(":
            opening = self._tokens[self._position]
            args = self._arguments()
            return self._set_depth(self._call(opening.offset, token.text, operand, args), operand, *args)
        field = self._field_name(token)
        if not optional:
            return self._set_depth(Select(self._new(dot.offset), operand, field), operand)
        if not self._optionals:
            return self._report_semantic_error(dot.offset, "unsupported syntax '.?'")
        call = Call(self._new(dot.offset), "_?._", None, [operand, Literal(self._new(token.offset), field)])
        return self._set_depth(call, operand)

    def _not_a_field(self, token: Token) -> SyntaxFailure:
        if token.kind in _CONSTANTS:
            self._report(token.offset, f"Syntax error: mismatched input '{token.text}' expecting IDENTIFIER")
        else:
            consumed = "."
            if token.kind != EOF:
                consumed += self.source.text[self._tokens[self._position - 1].offset + 1 : token.offset] + token.text
            self._report(token.offset, f"Syntax error: no viable alternative at input '{consumed}'")
        return SyntaxFailure()

    def _index(self, operand: Expr, opening: Token) -> Expr:
        self._position += 1
        self._sync(_INDEX)
        optional = self._tokens[self._position].kind == "?"
        if optional:
            self._position += 1
        node = self._new(opening.offset)
        index = self._expression_until(_BRACKET)
        self._expect("]", closing=True)
        if optional and not self._optionals:
            return self._report_semantic_error(opening.offset, "unsupported syntax '[?'")
        return self._set_depth(Call(node, "_[?_]" if optional else "_[_]", None, [operand, index]), operand, index)

    def _arguments(self) -> list[Expr]:
        self._position += 1
        self._sync(_ARGUMENTS)
        args: list[Expr] = []
        if self._tokens[self._position].kind != ")":
            args.append(self._expression_until(_ARGUMENT_END))
            while self._tokens[self._position].kind == ",":
                self._position += 1
                args.append(self._expression_until(_ARGUMENT_END))
        self._expect(")", closing=True)
        return args

    def _primary(self) -> Expr:
        token = self._tokens[self._position]
        kind = token.kind
        if kind == IDENTIFIER or kind == ".":
            return self._name()
        self._position += 1
        if kind == "(":
            inner = self._expression_until(_PARENTHESIS)
            self._expect(")", closing=True)
            return inner
        if kind == "[":
            return self._list(token)
        if kind == "{":
            return self._map(token)
        return self._literal(token)

    def _name(self) -> Expr:
        """Parse an identifier, a function call or a message."""
        first = self._tokens[self._position]
        prefix = ""
        if first.kind == ".":
            prefix = "."
            self._position += 1
            if self._tokens[self._position].kind != IDENTIFIER:
                raise self._not_a_field(self._tokens[self._position])
        token = self._tokens[self._position]
        message = self._message_name()
        if message:
            return self._message(prefix + ".".join(message))
        self._position += 1
        after = self._tokens[self._position]
        if after.kind == "(":
            node = self._new(after.offset)
            args = self._arguments()
            if token.text in _RESERVED:
                return self._report_semantic_error(first.offset, f"reserved identifier: {token.text}")
            del self._offsets[node]
            return self._set_depth(self._call(after.offset, prefix + token.text, None, args), *args, by=0)
        if token.text in _RESERVED:
            return self._report_semantic_error(first.offset, f"reserved identifier: {token.text}")
        return Ident(self._new(token.offset), prefix + token.text)

    def _message_name(self) -> list[str]:
        """Return the parts of C{a.b.C} and move to the following C{{}, or return nothing if none follows."""
        at = self._position
        names = [self._tokens[at].text]
        while self._tokens[at + 1].kind == "." and self._tokens[at + 2].kind == IDENTIFIER:
            at += 2
            names.append(self._tokens[at].text)
        if self._tokens[at + 1].kind != "{":
            return []
        self._position = at + 1
        return names

    def _message(self, name: str) -> Expr:
        opening = self._tokens[self._position]
        node = self._new(opening.offset)
        self._position += 1
        self._sync(_FIELDS)
        entries: list[Entry] = []
        if self._tokens[self._position].kind not in ("}", ","):
            entries.append(self._field())
            while self._tokens[self._position].kind == "," and self._tokens[self._position + 1].kind in _FIELD:
                self._position += 1
                entries.append(self._field())
        self._close("}")
        return self._set_depth(StructExpr(node, name, entries), *(entry.value for entry in entries), by=0)

    def _field(self) -> Entry:
        optional = self._optional_mark()
        token = self._tokens[self._position]
        if token.kind not in _NAMES:
            raise self._mismatch(_NAMES)
        self._position += 1
        name = self._field_name(token)
        node = self._new(self._expect(":").offset)
        return Entry(node, name, self._expression_until(_ENTRY_END), optional)

    def _field_name(self, token: Token) -> str:
        if token.kind != ESCAPED:
            return token.text
        if not self._escapes:
            self._report(token.offset, "unsupported syntax: '`'")
        return token.text[1:-1]

    def _map(self, opening: Token) -> Expr:
        node = self._new(opening.offset)
        self._sync(_ENTRIES)
        entries: list[Entry] = []
        if self._tokens[self._position].kind not in ("}", ","):
            entries.append(self._entry())
            while self._tokens[self._position].kind == "," and self._tokens[self._position + 1].kind in _INDEX:
                self._position += 1
                entries.append(self._entry())
        self._close("}")
        children = [child for entry in entries for child in (entry.key, entry.value)]
        return self._set_depth(MapExpr(node, entries), *children, by=0)

    def _entry(self) -> Entry:
        optional = self._optional_mark()
        key = self._expression_until(_COLON)
        node = self._new(self._expect(":").offset)
        return Entry(node, key, self._expression_until(_ENTRY_END), optional)

    def _list(self, opening: Token) -> Expr:
        node = self._new(opening.offset)
        self._sync(_ELEMENTS)
        elements: list[Expr] = []
        optional: set[int] = set()
        if self._tokens[self._position].kind not in ("]", ","):
            while True:
                if self._optional_mark():
                    optional.add(len(elements))
                elements.append(self._expression_until(_ELEMENT_END))
                if self._tokens[self._position].kind != "," or self._tokens[self._position + 1].kind not in _INDEX:
                    break
                self._position += 1
        self._close("]")
        return self._set_depth(ListExpr(node, elements, frozenset(optional)), *elements, by=0)

    def _optional_mark(self) -> bool:
        token = self._tokens[self._position]
        if token.kind != "?":
            return False
        self._position += 1
        if not self._optionals:
            self._report(token.offset, "unsupported syntax '?'")
        return True

    def _close(self, kind: str) -> None:
        """Parse the end of a list, map or message after an optional trailing comma."""
        self._sync(frozenset({kind, ","}))
        if self._tokens[self._position].kind == ",":
            self._position += 1
        self._expect(kind, closing=True)

    def _literal(self, token: Token) -> Expr:
        text, kind = token.text, token.kind
        if kind == "-":
            number = self._tokens[self._position]
            self._position += 1
            text, kind = "-" + number.text, number.kind
        try:
            if kind == INT:
                value: object = literals.parse_int(text)
            elif kind == STRING:
                value = literals.parse_string(text)
            elif kind == UINT:
                value = literals.parse_uint(text)
            elif kind == FLOAT:
                value = literals.parse_double(text)
            elif kind == BYTES:
                value = literals.parse_bytes(text)
            else:
                value = _CONSTANTS[kind]
        except literals.LiteralError as error:
            return self._report_semantic_error(token.offset, str(error))
        return Literal(self._new(token.offset), value)
