//! One line a case: a schema, an input, and what is told.

use super::*;

fn passes(schema: &str, input: &str) {
    assert_eq!(check(schema, input), Ok(()), "{schema} {input}");
}

fn fails(schema: &str, input: &str, told: &str) {
    assert_eq!(check(schema, input), Err(told.to_owned()), "{schema} {input}");
}

#[test]
fn a_type_is_one_or_a_list() {
    passes(r#"{"type":"string"}"#, r#""a""#);
    passes(r#"{"type":["string","null"]}"#, "null");
    passes(r#"{"type":"integer"}"#, "1.0");
    passes(r#"{"type":"integer"}"#, "18446744073709551615");
    passes(r#"{"type":"number"}"#, "1.5");
    passes(r#"{"type":"boolean"}"#, "false");
    passes(r#"{"type":"array"}"#, "[]");
    fails(r#"{"type":"string"}"#, "1", "input: must be a string");
    fails(r#"{"type":"integer"}"#, "1.5", "input: must be an integer");
    fails(r#"{"type":["object","null"]}"#, "[]", "input: must be an object or null");
}

#[test]
fn members_are_named_by_their_place() {
    let schema = r#"{"type":"object","required":["path"],"additionalProperties":false,
        "properties":{"path":{"type":"string"},"lines":{"items":{"properties":{"n":{"minimum":1}}}},"any":true}}"#;
    passes(schema, r#"{"path":"a","lines":[{"n":1},{"n":2.5},{}],"any":[]}"#);
    fails(schema, "{}", "input.path: is missing");
    fails(schema, r#"{"path":7}"#, "input.path: must be a string");
    fails(schema, r#"{"path":"a","x\n":1}"#, r"input.x\n: must not be there");
    fails(
        schema,
        r#"{"path":"a","lines":[{"n":1},{"n":0}]}"#,
        "input.lines[1].n: must be 1 at the least",
    );
    fails(r#"{"additionalProperties":{"type":"null"}}"#, r#"{"a":1}"#, "input.a: must be null");
    passes(r#"{"required":["a"]}"#, "[]");
}

#[test]
fn a_choice_is_by_value() {
    passes(r#"{"enum":["a",1,{"x":[1]}]}"#, "1.0");
    passes(r#"{"enum":["a",1,{"x":[1]}]}"#, r#"{"x":[1.0]}"#);
    passes(r#"{"const":null}"#, "null");
    fails(r#"{"enum":["a",1]}"#, r#""b""#, "input: must be one of a, 1");
    fails(r#"{"enum":[{"x":1}]}"#, r#"{"x":1,"y":1}"#, r#"input: must be one of {\"x\":1}"#);
    fails(r#"{"enum":[]}"#, "1", "input: must be one of ");
    fails(r#"{"const":true}"#, "false", "input: must be true");
    fails(
        r#"{"enum":[1,2,3,4,5,6,7,8,9]}"#,
        "0",
        "input: must be one of 1, 2, 3, 4, 5, 6, 7, 8, …",
    );
}

#[test]
fn bounds_are_kept_to_the_last_unit() {
    let number = r#"{"minimum":-1,"maximum":9007199254740993}"#;
    passes(number, "-1");
    passes(number, "9007199254740993");
    fails(number, "9007199254740994", "input: must be 9007199254740993 at the most");
    fails(number, "-1.5", "input: must be -1 at the least");
    let text = r#"{"minLength":2,"maxLength":3}"#;
    passes(text, r#""äö""#);
    passes(text, "1");
    fails(text, r#""ä""#, "input: must have 2 characters at the least");
    fails(text, r#""abcd""#, "input: must have 3 characters at the most");
}

#[test]
fn keywords_that_are_not_known_are_refused_in_a_file_and_ignored_in_a_journal() {
    passes(r#"{"$schema":"x","description":1,"pattern":"^a$","anyOf":[]}"#, "3");
    let found = |schema: &str| check_schema(schema).map_err(|bad| (bad.path.join("/"), bad.what));
    for keyword in ["pattern", "minItems", "oneOf", "$ref", "format", "x-mine", "Type"] {
        let unknown = |path: String| Err((path, Wrong::UnknownKeyword));
        assert_eq!(found(&format!(r#"{{"{keyword}":1}}"#)), unknown(keyword.to_owned()));
        let deep = format!(r#"{{"properties":{{"a.b":{{"items":{{"{keyword}":1}}}}}}}}"#);
        assert_eq!(found(&deep), unknown(format!("properties/a.b/items/{keyword}")));
    }
    let known = r#"{"title":"a","description":"a","default":1,"examples":[1],"$schema":"x","$comment":"a",
        "const":1,"properties":{"pattern":{"type":"string"}},"enum":[{"format":1}]}"#;
    assert_eq!(found(known), Ok(()));
}

#[test]
fn each_keyword_that_is_checked_is_looked_at() {
    for keyword in CHECKED.into_iter().filter(|keyword| *keyword != "const") {
        assert!(check_schema(&format!(r#"{{"{keyword}":null}}"#)).is_err(), "{keyword}");
    }
}

#[test]
fn a_schema_that_cannot_be_meant_is_refused() {
    for (schema, told) in [
        ("true", "schema: must be an object"),
        ("[]", "schema: must be an object"),
        (r#"{"required":"a"}"#, "schema.required: must be a list of strings"),
        (r#"{"enum":"a"}"#, "schema.enum: must be a list"),
        (r#"{"minimum":"1"}"#, "schema.minimum: must be a number"),
        (r#"{"maxLength":-1}"#, "schema.maxLength: must be a whole number"),
        (r#"{"properties":[]}"#, "schema.properties: must be an object"),
        (
            r#"{"properties":{"a":{"items":1}}}"#,
            "schema.properties.a.items: must be an object or a boolean",
        ),
        (
            r#"{"properties":{"a":{"type":"text"}}}"#,
            "schema.properties.a.type: must be of null, boolean, object, array, number, integer, string",
        ),
    ] {
        assert_eq!(check_schema(schema).map_err(|bad| bad.to_string()), Err(told.to_owned()));
        fails(schema, "{}", told);
    }
    let cut = check_schema("{").expect_err("half a schema").to_string();
    assert!(cut.starts_with("schema: must be JSON, but EOF"), "{cut}");
    let cut = check("{}", "{").expect_err("half an input");
    assert!(cut.starts_with("input: must be JSON, but EOF"), "{cut}");
}
