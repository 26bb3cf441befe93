"""Tests for L{kubetwist.api.listoptions} and L{kubetwist.api.continuetokens}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.listoptions import (
    Query,
    parse_create_options,
    parse_delete_options_from_body,
    parse_delete_options_from_query,
    parse_get_options,
    parse_int64,
    parse_list_options,
    parse_patch_options,
    parse_update_options,
)
from kubetwist.api.options import ListOptions
from tests.api.strategies import documents

MERGE = "application/merge-patch+json"


APPLY = "application/apply-patch+yaml"


def query(text: str) -> dict[str, list[str]]:
    """Return a parsed query."""
    return parse_qs(text, keep_blank_values=True)


class OptionsTests(SynchronousTestCase):
    """Base class of tests for options."""

    def assert_bad(self, message: str, call: Callable[..., Any], *arguments: Any) -> None:
        """Check that a call raises a 400."""
        error = self.assertRaises(APIStatusError, call, *arguments)
        self.assertEqual((error.code, error.message), (400, message))

    def assert_invalid(self, kind: str, texts: list[str], call: Callable[..., Any], *arguments: Any) -> None:
        """Check that a call raises a 422 for options."""
        error = self.assertRaises(APIStatusError, call, *arguments)
        assert error.details is not None
        self.assertEqual((error.code, error.reason, error.details["group"]), (422, "Invalid", "meta.k8s.io"))
        self.assertEqual(error.details["kind"], kind)
        errors = [f"{cause['field']}: {cause['message']}" for cause in error.details["causes"]]
        self.assertEqual(errors, texts)


IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential"


class ListOptionsTests(OptionsTests):
    """Tests for the options of lists and watches."""

    def test_no_parameters(self) -> None:
        """Without parameters, or with unknown ones, all objects are listed."""
        for text in ("", "pretty=1&fieldManager=x"):
            options = parse_list_options(query(text))
            self.assertEqual((options.labels, options.fields, options.limit, options.watch), (None, (), 0, False))

    def test_values(self) -> None:
        """Each parameter sets its option; the first of repeated ones counts."""
        options = parse_list_options(
            query(
                "labelSelector=a%3Db&fieldSelector=metadata.name!%3Dc&limit=5&limit=6&continue=abc&timeoutSeconds=7"
                "&resourceVersion=8&resourceVersion=bad"
            )
        )
        assert options.labels is not None
        self.assertEqual((options.labels({"a": "b"}), options.labels({})), (True, False))
        self.assertEqual(options.fields, (("metadata.name", "c", False),))
        self.assertEqual((options.limit, options.continue_token, options.timeout), (5, "abc", 7.0))
        self.assertEqual((options.resource_version, options.label_selector), ("8", "a=b"))

    def test_booleans(self) -> None:
        """Any value except for "0" and "false" is true."""
        for value, true in {"": True, "maybe": True, "1": True, "0": False, "False": False, "FALSE": False}.items():
            self.assertEqual(parse_list_options(query(f"watch={value}")).watch, true)

    def test_numbers(self) -> None:
        """Invalid numbers are rejected with Go's messages."""
        for text, problem in {
            "limit=ten": '"ten": invalid syntax',
            "limit=": '"": invalid syntax',
            "timeoutSeconds=1.5": '"1.5": invalid syntax',
            "limit=9223372036854775808": '"9223372036854775808": value out of range',
            f"limit={'9' * 5000}": f'"{"9" * 5000}": value out of range',
        }.items():
            self.assert_bad(f"strconv.ParseInt: parsing {problem}", parse_list_options, query(text))
        self.assertEqual(parse_int64("-9223372036854775808"), -(1 << 63))

    def test_selectors(self) -> None:
        """Invalid selectors are a bad request."""
        self.assert_bad(
            "unable to parse requirement: found '', expected: ',' or ')'",
            parse_list_options,
            query("labelSelector=a in (b"),
        )
        self.assert_bad("invalid selector: 'a'; can't understand 'a'", parse_list_options, query("fieldSelector=a"))

    def test_list_versions(self) -> None:
        """A list may have a known match, and only with a version."""
        match = "resourceVersionMatch"
        for text, errors in {
            f"{match}=Exact": [f"{match}: Forbidden: {match} is forbidden unless resourceVersion is provided"],
            f"{match}=Exact&resourceVersion=0": [
                f'{match}: Forbidden: {match} "exact" is forbidden for resourceVersion "0"'
            ],
            f"{match}=Newest&resourceVersion=1&continue=x": [
                f"{match}: Forbidden: {match} is forbidden when continue is provided",
                f'{match}: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
            ],
            "sendInitialEvents=false": ["sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"],
        }.items():
            self.assert_invalid("ListOptions", errors, parse_list_options, query(text))

    def test_watch_versions(self) -> None:
        """A watch has both initial events and NotOlderThan, or neither."""
        match = "resourceVersionMatch"
        needs = f"{match}: Forbidden: sendInitialEvents requires setting {match} to NotOlderThan"
        alone = f"{match}: Forbidden: {match} is forbidden for watch unless sendInitialEvents is provided"
        for text, errors in {
            "sendInitialEvents=true": [needs],
            f"sendInitialEvents=true&{match}=Exact": [
                needs,
                f'{match}: Unsupported value: "Exact": supported values: "NotOlderThan"',
            ],
            f"{match}=NotOlderThan": [alone],
            "continue=x": [f"{match}: Forbidden: {match} is forbidden when continue is provided"],
        }.items():
            self.assert_invalid("ListOptions", errors, parse_list_options, query(f"watch=1&{text}"))
        self.assertEqual(parse_list_options(query("watch=1&continue=x&resourceVersion=5")).continue_token, "x")

    def test_without_watch_list(self) -> None:
        """Without the feature gate WatchList, initial events cannot be requested, and are not the default."""
        match = "resourceVersionMatch"
        gate = (
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate"
        )
        gate = f"{gate} is enabled"

        def parse(parameters: Query) -> ListOptions:
            return parse_list_options(parameters, watch_list=False)

        for text, errors in {
            f"sendInitialEvents=false&{match}=NotOlderThan": [gate],
            f"sendInitialEvents=true&{match}=Exact": [
                f"{match}: Forbidden: sendInitialEvents requires setting {match} to NotOlderThan",
                gate,
                f'{match}: Unsupported value: "Exact": supported values: "NotOlderThan"',
            ],
            f"{match}=NotOlderThan": [
                f"{match}: Forbidden: {match} is forbidden for watch unless sendInitialEvents is provided"
            ],
        }.items():
            self.assert_invalid("ListOptions", errors, parse, query(f"watch=1&{text}"))
        for text in ("watch=1", "watch=1&resourceVersion=0", "watch=1&continue=x"):
            self.assertIsNone(parse(query(text)).send_initial_events)

    def test_watch_without_version(self) -> None:
        """A watch without a version, or from 0, sends the existing objects first."""
        for text in ("watch=1", "watch=1&resourceVersion=0"):
            options = parse_list_options(query(text))
            self.assertEqual((options.send_initial_events, options.resource_version_match), (True, "NotOlderThan"))
        self.assertIsNone(parse_list_options(query("watch=1&resourceVersion=5")).send_initial_events)
        self.assertTrue(parse_list_options({}, watch=True).watch)

    @given(
        st.dictionaries(
            st.sampled_from(["watch", "limit", "resourceVersion", "resourceVersionMatch", "continue", "labelSelector"])
            | st.sampled_from(["fieldSelector", "timeoutSeconds", "sendInitialEvents", "dryRun", "force", "uid"])
            | st.sampled_from(["propagationPolicy", "gracePeriodSeconds", "orphanDependents", "fieldManager"]),
            st.lists(st.sampled_from(["", "0", "1", "true", "Exact", "a=b", "All", "Orphan"]) | st.text(), max_size=2),
        )
    )
    def test_any_query(self, parameters: dict[str, list[str]]) -> None:
        """A query is parsed to options of every type, or rejected with a Status."""
        for make in (
            parse_list_options,
            parse_get_options,
            parse_create_options,
            parse_update_options,
            parse_delete_options_from_query,
            lambda parameters: parse_patch_options(parameters, MERGE),
        ):
            try:
                make(parameters)
            except APIStatusError as error:
                self.assertIn(error.code, (400, 422))


class WriteOptionsTests(OptionsTests):
    """Tests for the options of writes."""

    def test_defaults(self) -> None:
        """Without parameters a write is stored, and unknown fields give warnings."""
        for options in (parse_create_options({}), parse_update_options({}), parse_patch_options({}, MERGE)):
            self.assertEqual((options.dry_run, options.field_manager, options.field_validation), (False, "", ""))

    def test_values(self) -> None:
        """Each parameter sets its option."""
        options = parse_create_options(query("dryRun=All&dryRun=All&fieldManager=me&fieldValidation=Strict"))
        self.assertEqual((options.dry_run, options.field_manager, options.field_validation), (True, "me", "Strict"))
        self.assertEqual(parse_create_options(query("fieldValidation=")).field_validation, "")
        self.assertTrue(parse_patch_options(query("force=maybe&fieldManager=me"), APPLY).force)
        self.assertEqual(parse_get_options(query("resourceVersion=x")).resource_version, "x")

    def test_invalid(self) -> None:
        """All invalid values are reported at once."""
        self.assert_invalid(
            "UpdateOptions",
            [
                'dryRun: Unsupported value: ["Some"]: supported values: "All"',
                'fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"',
            ],
            parse_update_options,
            query("fieldValidation=Maybe&dryRun=Some"),
        )
        self.assert_invalid(
            "CreateOptions",
            ['dryRun: Unsupported value: ["All","x"]: supported values: "All"'],
            parse_create_options,
            query("dryRun=All&dryRun=x"),
        )
        self.assert_invalid(
            "CreateOptions",
            ['dryRun: Unsupported value: [""]: supported values: "All"'],
            parse_create_options,
            query("dryRun="),
        )

    def test_field_manager(self) -> None:
        """Field managers have printable names of at most 128 bytes."""
        self.assert_invalid(
            "CreateOptions",
            ["fieldManager: Too long: may not be more than 128 bytes"],
            parse_create_options,
            {"fieldManager": ["é" * 65]},
        )
        self.assert_invalid(
            "CreateOptions",
            [
                'fieldManager: Invalid value: "é\\n\\u200b": invalid character U+000A (at position 2)',
                'fieldManager: Invalid value: "é\\n\\u200b": invalid character U+200B (at position 3)',
            ],
            parse_create_options,
            {"fieldManager": ["é\n\u200b"]},
        )

    def test_patches(self) -> None:
        """Apply requires a field manager, and only apply may force."""
        self.assert_invalid(
            "PatchOptions",
            ["fieldManager: Required value: is required for apply patch"],
            parse_patch_options,
            {},
            APPLY,
        )
        self.assert_invalid(
            "PatchOptions",
            ["force: Forbidden: may not be specified for non-apply patch"],
            parse_patch_options,
            query("force=0"),
            MERGE,
        )


class DeleteOptionsTests(OptionsTests):
    """Tests for the options of deletions."""

    def test_query(self) -> None:
        """Without a body the options are in the query."""
        options = parse_delete_options_from_query(
            query("gracePeriodSeconds=-1&propagationPolicy=Orphan&dryRun=All&uid=u&resourceVersion=5")
        )
        self.assertEqual((options.grace_period_seconds, options.propagation_policy), (-1, "Orphan"))
        self.assertEqual((options.dry_run, options.precondition_uid), (True, "u"))
        self.assertEqual(options.precondition_resource_version, "5")
        self.assertIsNone(parse_delete_options_from_query(query("uid=")).precondition_uid)
        self.assertIs(parse_delete_options_from_query(query("orphanDependents=0")).orphan_dependents, False)

    def test_body(self) -> None:
        """The body may have any version, and unknown fields."""
        options = parse_delete_options_from_body(
            {
                "apiVersion": "v9",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u"},
                "orphanDependents": True,
                "dryRun": ["All"],
                "colour": "blue",
            }
        )
        self.assertEqual((options.grace_period_seconds, options.precondition_uid), (0, "u"))
        self.assertEqual((options.orphan_dependents, options.dry_run), (True, True))
        for empty in ({}, None, {"kind": None, "apiVersion": "", "preconditions": None}):
            self.assertEqual(parse_delete_options_from_body(empty), parse_delete_options_from_query({}))

    def test_unreadable(self) -> None:
        """Unreadable objects are deleted without conditions; if that is not supported, the option is ignored."""
        option = {IGNORE: True}
        self.assertTrue(parse_delete_options_from_body(option, True).ignore_store_read_error)
        self.assertTrue(parse_delete_options_from_query(query(f"{IGNORE}=true"), True).ignore_store_read_error)
        self.assertFalse(parse_delete_options_from_body({IGNORE: False}, True).ignore_store_read_error)
        more = {**option, "dryRun": ["All"], "gracePeriodSeconds": 0, "preconditions": {"uid": "u"}}
        self.assertFalse(parse_delete_options_from_body(more).ignore_store_read_error)
        for conflicting, body in (
            (["dryRun", "gracePeriodSeconds", "preconditions"], more),
            (["propagationPolicy"], {**option, "propagationPolicy": "Orphan"}),
            (["orphanDependents"], {**option, "orphanDependents": False}),
        ):
            self.assert_invalid(
                "DeleteOptions",
                [f"{IGNORE}: Invalid value: true: cannot be set together with .{other}" for other in conflicting],
                lambda body: parse_delete_options_from_body(body, True),
                body,
            )

    def test_policies(self) -> None:
        """There are three propagation policies, and the deprecated option excludes them."""
        choice = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        self.assert_invalid(
            "DeleteOptions",
            [f'propagationPolicy: Unsupported value: "": {choice}'],
            parse_delete_options_from_query,
            query("propagationPolicy="),
        )
        self.assert_invalid(
            "DeleteOptions",
            [
                'propagationPolicy: Invalid value: "x": orphanDependents and deletionPropagation cannot be both set',
                f'propagationPolicy: Unsupported value: "x": {choice}',
                'dryRun: Unsupported value: ["None"]: supported values: "All"',
            ],
            parse_delete_options_from_body,
            {"propagationPolicy": "x", "orphanDependents": False, "dryRun": ["None"]},
        )

    def test_types(self) -> None:
        """Values of wrong types are rejected with Go's messages."""
        for body, json_type, field, go_type in (
            ({"propagationPolicy": 3}, "number", "DeleteOptions.propagationPolicy", "v1.DeletionPropagation"),
            ({"dryRun": "All"}, "string", "DeleteOptions.dryRun", "[]string"),
            ({"dryRun": [1]}, "number", "DeleteOptions.dryRun", "string"),
            ({"preconditions": {"uid": 5}}, "number", "Preconditions.preconditions.uid", "types.UID"),
            ({"preconditions": []}, "array", "DeleteOptions.preconditions", "v1.Preconditions"),
            ({"gracePeriodSeconds": 1.5}, "number 1.5", "DeleteOptions.gracePeriodSeconds", "int64"),
            ({"gracePeriodSeconds": True}, "bool", "DeleteOptions.gracePeriodSeconds", "int64"),
            ({"orphanDependents": "x"}, "string", "DeleteOptions.orphanDependents", "bool"),
        ):
            detail = f"{json_type} into Go struct field {field} of type {go_type}"
            self.assert_bad(f"json: cannot unmarshal {detail}", parse_delete_options_from_body, body)

    def test_other_kinds(self) -> None:
        """A body of another kind is rejected."""
        self.assert_bad(
            'no kind "ConfigMap" is registered for version "v1" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"',
            parse_delete_options_from_body,
            {"apiVersion": "v1", "kind": "ConfigMap"},
        )
        error = self.assertRaises(APIStatusError, parse_delete_options_from_body, [])
        self.assertSubstring("couldn't get version/kind; json parse error: json: cannot unmarshal array", error.message)

    @given(documents)
    def test_any_body(self, body: Any) -> None:
        """A body is parsed to options, or rejected with a Status."""
        for document in (body, {"preconditions": body}, {"dryRun": [body], "gracePeriodSeconds": body}):
            try:
                parse_delete_options_from_body(document)
            except APIStatusError as error:
                self.assertIn(error.code, (400, 422))
