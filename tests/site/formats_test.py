#!/usr/bin/env python3
"""What the command writes against docs/schemas: valid, and without a member that they do not name.

Usage: formats_test.py ALLRANKS NVCC ROOT FOLDER
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print('allranks-skip: python3-jsonschema is needed')
    sys.exit(0)

allranks, nvcc, root, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
schemas = {path.name: json.loads(path.read_text(encoding='utf-8')) for path in (root / 'docs/schemas').glob('*.json')}
failures = []


def fail(text):
    failures.append(text)
    print('FAIL', text)


def resolve(schema, document):
    """The schema behind a reference, and the file that it stands in."""
    while '$ref' in schema:
        name, _, path = schema['$ref'].partition('#')
        document = name or document
        schema = schemas[document]
        for step in path.strip('/').split('/'):
            schema = schema[step]
    return schema, document


def members(schema, document):
    """Every member that a schema names, with its schema and file."""
    schema, document = resolve(schema, document)
    found = {name: (member, document) for name, member in schema.get('properties', {}).items()}
    for part in schema.get('allOf', []):
        found.update(members(part, document))
    return found


def unnamed(value, schema, document, path=''):
    """Members of the value that the schema does not name."""
    plain, document = resolve(schema, document)
    if isinstance(value, dict):
        known, others = members(plain, document), plain.get('additionalProperties')
        for name, inner in value.items():
            if name in known:
                yield from unnamed(inner, *known[name], f'{path}.{name}')
            elif isinstance(others, dict):
                yield from unnamed(inner, others, document, f'{path}.*')
            else:
                yield f'{path}.{name}'
    elif isinstance(value, list):
        for inner in value:
            yield from unnamed(inner, plain.get('items', {}), document, f'{path}[]')


def validator(name):
    """With what it refers to in itself: there is only one other file that has definitions."""
    text = json.dumps(schemas[name]).replace('"finding.json#', '"#')
    bundled = {**json.loads(text), '$defs': {**schemas['finding.json']['$defs'], **schemas[name].get('$defs', {})}}
    return jsonschema.Draft202012Validator(bundled)


def check(what, text, name):
    value = json.loads(text)
    for error in sorted(validator(name).iter_errors(value), key=str)[:5]:
        fail(f'{what}: {name}: at {"/".join(map(str, error.absolute_path))}: {error.message[:300]}')
    for member in sorted(set(unnamed(value, schemas[name], name))):
        fail(f'{what}: {name} does not name {member}')
    # A schema that takes everything would prove nothing.
    for member in schemas[name]['required']:
        broken = {key: inner for key, inner in value.items() if key != member}
        if validator(name).is_valid(broken):
            fail(f'{name} does not require {member}')
    if not list(unnamed({**value, 'not_there': 1}, schemas[name], name)):
        fail(f'{name} takes any member')
    print(f'{what}: {len(text)} bytes')
    return value


def run(*arguments, code=0):
    # A cache of its own: what other runs have built, or drop, does not matter.
    environment = {**os.environ, 'ALLRANKS_CACHE': str(folder / 'cache'), 'LC_ALL': 'C.UTF-8'}
    done = subprocess.run([str(argument) for argument in arguments], cwd=folder, env=environment,
                          capture_output=True, text=True)
    if done.returncode != code:
        fail(f'{" ".join(map(str, arguments))}: exit code {done.returncode}, not {code}: {done.stderr[-2000:]}')
    return done.stdout


def read(name):
    return (folder / name).read_text(encoding='utf-8')


for schema in schemas.values():
    jsonschema.Draft202012Validator.check_schema(schema)
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)

# Statistics and findings: of a race, under other schedules, of a clean program, of a deadlock.
run(nvcc, '-lineinfo', '-Xcompiler', '-g', '-o', 'race', root / 'examples/relaxed_flag.cu')
run(allranks, 'exec', '--stats-json', 'stats.json', '--', './race')
check('exec --stats-json', read('stats.json'), 'stats.json')
run(allranks, 'exec', '--check', '--stats-json', 'stats.json', '--findings', 'found.json', '--', './race', code=87)
if not check('exec --check --stats-json', read('stats.json'), 'stats.json').get('findings'):
    fail('the statistics have no findings')
if not check('exec --findings', read('found.json'), 'findings.json')['findings'][0]['edits']:
    fail('the finding has no edit')
run(allranks, 'exec', '--check', '--schedules', '4', '--findings', 'found.json', '--', './race', code=87)
check('exec --schedules --findings', read('found.json'), 'findings.json')
for program in ('tests/cli/errors.cu', 'tests/programs/deadlock/missing_signal.cu'):
    run(nvcc, '-lineinfo', '-I', root / 'tests/programs', '-o', pathlib.Path(program).stem, root / program)
run(allranks, 'exec', '--check', '--leaks', 'full', '--findings', 'found.json', '--', './errors', 'wrong', code=87)
check('exec --findings of errors and leaks', read('found.json'), 'findings.json')
run(allranks, 'exec', '--stats-json', 'stats.json', '--', './missing_signal', code=86)
if 'deadlock' not in check('exec --stats-json of a deadlock', read('stats.json'), 'stats.json'):
    fail('the statistics have no deadlock')

# Judgements: a pass, wrong results, a race, a file that does not compile.
problems = root / 'problems'
(folder / 'broken.cu').write_text('extern "C" void launch(const Args& args, cudaStream_t stream) { return 1 }\n')
for problem, file, code in (
        ('flag_pingpong', problems / 'p2p/flag_pingpong/reference.cu', 0),
        ('flag_pingpong', problems / 'p2p/flag_pingpong/baseline.cu', 0),
        ('flag_pingpong', problems / 'p2p/flag_pingpong/template.cu', 1),
        ('flag_pingpong', 'broken.cu', 1),
        ('allreduce_one_shot', problems / 'collective/allreduce_one_shot/controls/no_wait.cu', 1)):
    said = run(allranks, 'judge', problem, '--solution', file, '--seed', '1', '--json', code=code)
    check(f'judge --json {pathlib.Path(file).name}', said, 'judgement.json')

# A report, as a file and on a terminal.
run(allranks, 'run', '--models', 'oracle,nop', '--problems', 'flag_pingpong,fifo_gpu_to_cpu', '--rounds', '2',
    '--seed', '1', '--out', 'run', '--quiet')
said = run(allranks, 'report', 'run', '--no-plots', '--json')
check('report --json', said, 'summary.json')
check('summary.json', read('run/report/summary.json'), 'summary.json')
sys.exit(bool(failures))
