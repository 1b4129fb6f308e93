#!/usr/bin/env python3
"""docs/formats.md from docs/schemas/*.json: a table of members for each format.

Usage: tools/site/formats.py [--check]    --check: fail if the page is not what would be written
"""
import json
import pathlib
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs'
ORDER = ['stats', 'findings', 'finding', 'judgement', 'summary']

HEAD = '''# JSON formats

Members, types and meanings of what the command writes for other programs, made from the JSON Schemas (draft 2020-12)
beside each heading. A test validates real output against these and finds members that they do not name.

In all formats members may be added: readers ignore what they do not know. A member that changes its meaning, or goes,
counts up `version` or `schema`. Times are nanoseconds of virtual time, `bytes` are payload. A type with `?` may be
`null`; *(optional)* members may be missing. What belongs to another member stands behind a dot; `[]` is an element,
`*` any name.

The members of all other output with `--json` are in the [help texts](cli.md), the files of a run in
[campaigns.md](campaigns.md#the-folder). Findings as SARIF follow the
[standard](https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html), 2.1.0.
'''


def type_of(schema):
    if '$ref' in schema:
        return f'[{schema["$ref"].rsplit("/", 1)[-1]}](#{schema["$ref"].rsplit("/", 1)[-1]})'
    if 'allOf' in schema:
        return 'object'
    if 'enum' in schema:
        return 'string?' if None in schema['enum'] else 'string'
    kinds = schema.get('type', 'any')
    kinds = [kinds] if isinstance(kinds, str) else kinds
    name = next(kind for kind in kinds if kind != 'null')
    if name == 'array':
        name += ' of ' + type_of(schema['items']) if 'items' in schema else ''
    return name + ('?' if 'null' in kinds else '')


def rows(schema, prefix=''):
    """(name, type, meaning) of each member, with those inside of it."""
    for part in schema.get('allOf', []):
        if '$ref' in part:
            yield prefix + '...', type_of(part), 'its members'
        yield from rows(part, prefix)
    required = schema.get('required', [])
    for name, member in schema.get('properties', {}).items():
        about = member.get('description', '')
        if 'enum' in member and len(member['enum']) < 20:
            words = ', '.join(f'`{word}`' for word in member['enum'] if word is not None)
            about = f'{about}: {words}' if about else words
        yield prefix + name, type_of(member), ('*(optional)* ' if name not in required else '') + about
        inner, below = member, name
        while inner.get('type') == 'array' and 'items' in inner:
            inner, below = inner['items'], below + '[]'
        while isinstance(inner.get('additionalProperties'), dict):
            inner, below = inner['additionalProperties'], below + '.*'
        yield from rows(inner, prefix + below + '.')


def table(schema):
    lines = ['| member | type | meaning |', '|---|---|---|']
    lines += [f'| `{name}` | {kind} | {about} |' for name, kind, about in rows(schema)]
    return '\n'.join(lines)


def page():
    text = HEAD
    for name in ORDER:
        schema = json.loads((DOCS / f'schemas/{name}.json').read_text(encoding='utf-8'))
        text += f'\n## {schema["title"]}\n\n{schema["description"]} Schema: [{name}.json](schemas/{name}.json).\n'
        if 'properties' in schema:
            text += f'\n{table(schema)}\n'
        for part, definition in schema.get('$defs', {}).items():
            if schema.get('$ref', '').endswith('/' + part):
                text += f'\n{table(definition)}\n'
            else:
                about = definition.get('description', '')
                text += f'\n### {part}\n\n{about[:1].upper() + about[1:]}.\n\n{table(definition)}\n'
    return text


def main():
    target = DOCS / 'formats.md'
    if '--check' not in sys.argv:
        target.write_text(page(), encoding='utf-8')
    elif target.read_text(encoding='utf-8') != page():
        print(f'FAIL {target} is not made from docs/schemas: run tools/site/formats.py')
        sys.exit(1)


main()
