#!/usr/bin/env python3
"""Follows a tutorial to the letter, in a fresh folder, with an installed AllRanks on PATH.

    ```sh tutorial         commands, typed one after another into one shell. Each must exit with 0, or with N where
                           its line ends in `# exits with N`
    ```LANGUAGE title="F"  the reader writes this into the file F of the current folder; `F +` adds it to the end
    ```text output         what the commands before it print: each line is in their output, in this order. `...` in a
                           line stands for anything, a line of `...` for any lines

Usage: tutorial.py DOCUMENT PREFIX NVCC FOLDER [PATH...]    PATH: further folders for PATH
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

FENCE = re.compile(r'^( *)```(.*)$')
END = 'THE-COMMAND-HAS-ENDED'


def blocks(text):
    """(line, info, content) of each block of code."""
    lines = text.split('\n')
    at = 0
    while at < len(lines):
        match = FENCE.match(lines[at])
        if match:
            begin, indent = at, len(match.group(1))
            at += 1
            content = []
            while lines[at].strip() != '```':
                content.append(lines[at][indent:])
                at += 1
            yield begin + 1, match.group(2), content
        at += 1


def commands(lines):
    """Commands; one goes on behind a backslash at the end of a line, or in a loop, and may be a comment only."""
    command = ''
    for line in lines:
        command += line
        if line.endswith('\\'):
            command += '\n'
            continue
        if command.strip() and not command.lstrip().startswith('#'):
            yield command
        command = ''


class Shell:
    def __init__(self, folder, environment):
        self.process = subprocess.Popen(['bash', '--norc'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True,
                                        encoding='utf-8', errors='replace')

    def run(self, command):
        """Exit code, and what it printed."""
        # In this shell itself: folders, variables and jobs stay. Nothing is read from what follows.
        self.process.stdin.write(f'{{ {command}\n}} </dev/null\necho "{END} $? $PWD"\n')
        self.process.stdin.flush()
        output = []
        for line in self.process.stdout:
            head, found, rest = line.partition(END + ' ')
            if head:
                output.append(head)
            if found:
                code, _, self.folder = rest.strip().partition(' ')
                return int(code), ''.join(output)
        return None, ''.join(output)

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def missing_line(expected, output):
    """The first line that is not in the output, in this order; None: all are."""
    lines = [line.rstrip() for line in output.split('\n')]
    at = 0
    for line in expected:
        if line.strip() in ('', '...'):
            continue
        pattern = re.compile('.*'.join(re.escape(part.strip()) for part in re.split(r'\.\.\.', line.strip())))
        while at < len(lines) and not pattern.fullmatch(lines[at].strip()):
            at += 1
        if at == len(lines):
            return line
        at += 1
    return None


def main():
    document, prefix, nvcc, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / 'home').mkdir(parents=True)
    (folder / 'work').mkdir()
    environment = {name: value for name, value in os.environ.items()
                   if not re.match('ALLRANKS_|.*_API_KEY$|XDG_', name)}
    environment['PATH'] = ':'.join([str(prefix / 'bin'), str(nvcc.parent), *sys.argv[5:], environment['PATH']])
    environment['HOME'] = str(folder / 'home')
    environment['LC_ALL'] = 'C.UTF-8'
    shell = Shell(folder / 'work', environment)
    shell.folder = str(folder / 'work')
    failures, printed, count = 0, '', 0
    try:
        for line, info, content in blocks(document.read_text(encoding='utf-8')):
            place = f'{document.name}:{line}'
            title = re.search(r'title="([^"]+)"', info)
            if title:
                name, _, how = title.group(1).partition(' ')
                path = pathlib.Path(shell.folder) / name
                with path.open('a' if how == '+' else 'w', encoding='utf-8') as file:
                    file.write('\n'.join(content) + '\n')
            elif info == 'text output':
                absent = missing_line(content, printed)
                if absent:
                    failures += 1
                    print(f'FAIL {place}: not printed, or not in this order: {absent}\n--- printed:\n{printed}---')
            elif info == 'sh tutorial':
                printed = ''
                for command in commands(content):
                    count += 1
                    wanted = re.search(r'# exits with (\d+)$', command)
                    wanted = int(wanted.group(1)) if wanted else 0
                    code, output = shell.run(command)
                    printed += output
                    good = code == wanted
                    failures += not good
                    print('PASS' if good else 'FAIL', f'{place}: {command}' +
                          ('' if good else f'\nexit code {code}, not {wanted}: {output}'), flush=True)
    finally:
        shell.end()
    if not count:
        print('FAIL no commands')
    sys.exit(bool(failures) or not count)


main()
