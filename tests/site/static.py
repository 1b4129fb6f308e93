#!/usr/bin/env python3
"""What can be seen in the files of the built site and in the documents that it is made of.

- Every link of a page leads to a page or file of the site, and to an anchor that is there.
- Nothing that a browser loads by itself is on another server: attributes, styles and scripts.
- Every page is in the navigation; every manual of docs/ is a page.
- In the repository, where code hosts show the documents, links lead to files and headings that are there.
- Markup that means something else here than on a code host has not become text.

Usage: static.py SITE ROOT
"""
import contextlib
import html.parser
import io
import pathlib
import posixpath
import re
import shutil
import sys
import tempfile
import urllib.parse

# In scripts: names of formats, a parser's own test, and addresses in messages. None is requested.
HARMLESS = re.compile(r'http://www\.w3\.org/.*|http://a(/c%20d)?|https://bit\.ly/2s3ChXG')
LOADING = {'link': ['href'], 'script': ['src'], 'img': ['src', 'srcset'], 'iframe': ['src'], 'object': ['data'],
           'embed': ['src'], 'source': ['src', 'srcset'], 'video': ['src', 'poster'], 'audio': ['src'],
           'use': ['href', 'xlink:href'], 'image': ['href', 'xlink:href'], 'form': ['action']}
ABSOLUTE = re.compile(r'(?:https?:)?//', re.I)

failures = []


def fail(text):
    failures.append(text)
    print('FAIL', text)


def loads_of_style(text):
    """What a style sheet makes a browser load."""
    for match in re.finditer(r'url\(\s*["\']?([^"\')]+)|@import\s+["\']([^"\']+)', text):
        address = match.group(1) or match.group(2)
        if not address.startswith(('data:', '#')):
            yield address


class Page(html.parser.HTMLParser):
    """The links, anchors and loads of a page, and its text outside of code."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loads, self.inline, self.prose = [], set(), [], [], []
        self.article, self.code, self.script = 0, 0, None
        self.nav = []
        self.inside_nav = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ('id', 'name'):
            if attributes.get(name) and (name == 'id' or tag == 'a'):
                self.anchors.add(attributes[name])
        if tag == 'a' and 'href' in attributes:
            self.links.append(attributes['href'])
            if self.inside_nav:
                self.nav.append(attributes['href'])
        for name in LOADING.get(tag, []):
            if attributes.get(name) and not (tag == 'link' and attributes.get('rel') == 'canonical'):
                self.loads.append(attributes[name])
        self.loads.extend(loads_of_style(attributes.get('style') or ''))
        if tag in ('script', 'style'):
            self.script = tag
        self.article += tag == 'article'
        self.code += tag in ('code', 'pre')
        self.inside_nav += tag == 'nav'

    def handle_endtag(self, tag):
        if tag in ('script', 'style'):
            self.script = None
        self.article -= tag == 'article'
        self.code -= tag in ('code', 'pre')
        self.inside_nav -= tag == 'nav'

    def handle_data(self, data):
        if self.script == 'script':
            self.inline.append(data)
        elif self.script == 'style':
            self.loads.extend(loads_of_style(data))
        elif self.article and not self.code:
            self.prose.append(data)


def check_script(name, text):
    text = re.sub(r'/\*[\s\S]*?\*/', '', text) if len(text) > 2000 else text
    for match in re.finditer(r'https?://[^"\'`\s\\)]*', text, re.I):
        if not HARMLESS.fullmatch(match.group(0)):
            fail(f'{name}: the script knows the address {match.group(0)}')


def check_site(site):
    pages = {str(path.relative_to(site)): Page(path.read_text(encoding='utf-8')) for path in site.rglob('*.html')}
    if len(pages) < 25:
        fail(f'only {len(pages)} pages')
    for name, page in pages.items():
        base = '' if name == '404.html' else posixpath.dirname(name)
        for link in page.links:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            path = urllib.parse.unquote(address.path)
            # The page of errors is shown at any address: its links begin at the root.
            to = path.lstrip('/')
            if not path.startswith('/'):
                to = posixpath.normpath(posixpath.join(base, path)) if path else name
            to = 'index.html' if to in ('', '.') else to
            if not (site / to).is_file():
                fail(f'{name}: the link {link} leads nowhere')
            elif address.fragment and to in pages and urllib.parse.unquote(address.fragment) not in pages[to].anchors:
                fail(f'{name}: there is no {address.fragment} in {to}')
        for load in page.loads:
            if ABSOLUTE.match(load):
                fail(f'{name}: a browser loads {load}')
        for text in page.inline:
            check_script(name, text)
        prose = ''.join(page.prose)
        for match in re.finditer(r'\]\([^)\s]+\)|```|^ *[-*] \S.*$|\*\*\S|\|---', prose, re.M):
            fail(f'{name}: markup has become text: {match.group(0)[:80]}')
    for path in site.rglob('*.css'):
        for load in loads_of_style(path.read_text(encoding='utf-8')):
            if ABSOLUTE.match(load):
                fail(f'{path.relative_to(site)}: a browser loads {load}')
    for path in site.rglob('*.js'):
        check_script(str(path.relative_to(site)), path.read_text(encoding='utf-8'))
    for path in site.rglob('*.svg'):
        if re.search(r'(?:href|src)="(?:https?:)?//', path.read_text(encoding='utf-8')):
            fail(f'{path.relative_to(site)}: a browser loads something from elsewhere')
    shown = {posixpath.normpath(link.partition('#')[0]) for link in pages['index.html'].nav}
    for name in pages:
        if name not in shown and name not in ('404.html', 'index.html'):
            fail(f'{name} is not in the navigation')
    return pages


def anchors_of(text):
    """The anchors of a document's headings, as code hosts make them."""
    anchors, inside = dict.fromkeys(re.findall(r'<a (?:id|name)="([^"]+)"', text), 1), False
    for line in text.split('\n'):
        if re.match(r' *```', line):
            inside = not inside
        match = None if inside else re.match(r'#{1,6} +(.*?) *$', line)
        if match:
            words = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', match.group(1)).lower()
            slug = re.sub(r'[^\w\- ]', '', words).replace(' ', '-')
            count = anchors.get(slug, 0)
            anchors[slug] = count + 1
            if count:
                anchors[f'{slug}-{count}'] = 1
    return set(anchors)


def check_documents(root):
    documents = [root / name for name in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'src/README.md')]
    documents += sorted((root / 'docs').rglob('*.md'))
    texts = {path.resolve(): path.read_text(encoding='utf-8') for path in documents}
    for path, text in texts.items():
        prose = re.sub(r'`[^`\n]+`', '', re.sub(r'^ *```[\s\S]*?^ *```', '', text, flags=re.M))
        for match in re.finditer(r'\]\(([^()\s]+)\)', prose):
            link = match.group(1)
            if re.match(r'[a-z]+:', link):
                continue
            name, _, anchor = link.partition('#')
            to = (path.parent / name).resolve() if name else path
            if not to.exists():
                fail(f'{path.relative_to(root)}: there is no {link}')
            elif anchor and to in texts and anchor not in anchors_of(texts[to]):
                fail(f'{path.relative_to(root)}: there is no heading for {link}')


# What a change of a page must make fail, with a word of the message.
FAULTS = (('judge.html', '<img src="https://cdn.example/x.png">', 'loads https://cdn.example/x.png'),
          ('judge.html', '<link rel="stylesheet" href="//cdn.example/x.css">', 'loads //cdn.example/x.css'),
          ('judge.html', '<a href="nowhere.html">', 'nowhere.html leads nowhere'),
          ('judge.html', '<a href="scores.html#nowhere">', 'no nowhere in scores.html'),
          ('judge.html', '<article>see [that](that.md)</article>', 'has become text'),
          ('stray.html', '<p>', 'stray.html is not in the navigation'),
          ('stylesheets/site.css', 'body { background: url(//cdn.example/x.png) }', 'loads //cdn.example/x.png'),
          ('stylesheets/site.css', '@import "http://cdn.example/x.css";', 'loads http://cdn.example/x.css'),
          ('search/worker.js', 'fetch("https://cdn.example/x")', 'knows the address https://cdn.example/x'))


def check_checks(site):
    """A check that finds nothing here would find nothing anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / 'site'
        shutil.copytree(site, copy)
        for name, text, _ in FAULTS:
            with (copy / name).open('a', encoding='utf-8') as file:
                file.write(text)
        with contextlib.redirect_stdout(io.StringIO()):
            check_site(copy)
        said = '\n'.join(failures)
        failures.clear()
    for _, text, word in FAULTS:
        if word not in said:
            fail(f'the checks do not find: {text}')


def main():
    site, root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    check_checks(site)
    pages = check_site(site)
    check_documents(root)
    for path in (root / 'docs').rglob('*.md'):
        if str(path.relative_to(root / 'docs').with_suffix('.html')) not in pages:
            fail(f'{path.relative_to(root)} is no page')
    print(f'{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links')
    sys.exit(bool(failures))


main()
