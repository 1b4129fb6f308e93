"""What mkdocs does not do for this site by itself.

- Pages from files above docs/: README.md is the tour, CHANGELOG.md and CONTRIBUTING.md are pages, too.
- Links that the documents make for readers of the repository are made to work on the site. A link to a file that
  is no page becomes the file's path as code, or a link to $ALLRANKS_REPOSITORY/PATH where that is set.
- The page of JSON formats also has what help texts say of the formats without a schema.
- Blocks marked for tests (```sh test, ```text output) become plain ones.
- No page loads anything from another server: the addresses in the theme's scripts are taken out.
"""
import logging
import os
import pathlib
import posixpath
import re
import shutil

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORY = os.environ.get('ALLRANKS_REPOSITORY', '').rstrip('/')
ABOVE = {'README.md': 'tour.md', 'CHANGELOG.md': 'changelog.md', 'CONTRIBUTING.md': 'contributing.md'}
LOG = logging.getLogger('mkdocs.allranks')

FENCE = re.compile(r'^( *)(`{3,})\s*(.*?)\s*$')
LINK = re.compile(r'(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)')


def _titles(nav):
    """The name of each page in the navigation."""
    for entry in nav:
        for title, to in entry.items():
            if isinstance(to, list):
                yield from _titles(to)
            else:
                yield to, title


def on_files(files, config):
    for name, page in ABOVE.items():
        file = File(page, config['docs_dir'], config['site_dir'], config['use_directory_urls'])
        file.abs_src_path = str(ROOT / name)
        files.append(file)
    return files


def _source_of(page):
    """The path of a page's file in the repository."""
    for name, site in ABOVE.items():
        if page == site:
            return name
    return 'docs/' + page


def _page_of(path):
    """The page or file of the site that a path of the repository is, or None."""
    if path in ABOVE:
        return ABOVE[path]
    return path[len('docs/'):] if path.startswith('docs/') else None


def _link(match, page, titles):
    image, text, target = match.groups()
    if re.match(r'[a-z]+:|#', target):
        return match.group(0)
    name, _, anchor = target.partition('#')
    path = posixpath.normpath(posixpath.join(posixpath.dirname(_source_of(page)), name))
    if not (ROOT / path).exists():
        LOG.warning('%s: there is no %s', _source_of(page), path)
        return match.group(0)
    to = _page_of(path)
    if to and not (ROOT / path).is_dir():
        if text.endswith('.md'):  # a file's name says nothing here
            text = titles.get(to, text)
        to = posixpath.relpath(to, posixpath.dirname(page) or '.')
        return f'{image}[{text}]({to}{"#" + anchor if anchor else ""})'
    if REPOSITORY:
        return f'[{text}]({REPOSITORY}/{path})'
    return f'`{path}`' if path.endswith(text.strip('`')) else f'{text} (`{path}`)'


def _other_formats():
    """The paragraphs of help texts that list members of JSON."""
    text = '\n## Other output of the command\n\nFrom the help texts ([cli.md](cli.md)).\n'
    manual = (ROOT / 'docs/cli.md').read_text(encoding='utf-8')
    for command, body in re.findall(r'^## allranks (\S+) --help\n\n```text\n(.*?)^```', manual, re.M | re.S):
        found = re.findall(r'^The JSON [^\n]*(?:\n[^\n]+)*', body, re.M) if command != 'exec' else []
        if found:
            text += f'\n### allranks {command}\n\n```text\n' + '\n\n'.join(found) + '\n```\n'
    return text


def on_page_markdown(markdown, page, config, files):
    if page.file.src_path == 'formats.md':
        markdown += _other_formats()
    result, fence = [], None
    for line in markdown.split('\n'):
        found = FENCE.match(line)
        if fence is not None:
            if found and found.group(2) == fence and not found.group(3):
                fence = None
            result.append(line)
        elif found:
            fence = found.group(2)
            words = found.group(3).split(' ', 1)
            title = re.search(r'title="[^"]*"', found.group(3))
            info = words[0] + (f' {title.group(0)}' if title else '')
            result.append(found.group(1) + fence + (info or 'text'))
        else:
            result.append(line)
    titles = dict(_titles(config['nav']))
    # Links may go over the end of a line, code may not.
    text, blocks = [], '\n'.join(result)
    for part in re.split(r'(^ *```.*?^ *```$)', blocks, flags=re.M | re.S):
        if part.lstrip().startswith('```'):
            text.append(part)
            continue
        # A link whose text is code is a link; anything else in code is left alone.
        kept = []
        part = re.sub(r'(?<!\[)`[^`\n]+`(?!\])', lambda m: kept.append(m.group(0)) or f'\0{len(kept) - 1}\0', part)
        part = LINK.sub(lambda match: _link(match, page.file.src_path, titles), part)
        text.append(re.sub('\0(\\d+)\0', lambda m: kept[int(m.group(1))], part))
    return ''.join(text)


def on_page_content(html, page, config, files):
    # An option is not broken at its hyphens, and a sentence in a table not into single words.
    html = re.sub(r'<code>([^<\n]{1,28})</code>', r'<code class="short">\1</code>', html)
    return re.sub(r'<td>(?=[^<]{26})', '<td class="sentence">', html)


def on_post_build(config):
    site = pathlib.Path(config['site_dir'])
    for path in site.rglob('*.map'):
        path.unlink()
    shutil.rmtree(site / 'assets/javascripts/lunr', ignore_errors=True)  # searches in other languages
    for path in [*site.rglob('*.js'), *site.rglob('*.css')]:
        text = path.read_text(encoding='utf-8')
        text = re.sub(r'\n?(//|/\*)# sourceMappingURL=\S+( ?\*/)?', '', text)
        if path.suffix == '.js':
            # Diagrams, and the number of a repository's stars: neither is used.
            text = re.sub(r'https://(unpkg\.com/|api\.github\.com/|\$\{\w+\}/api/v4/)', 'about:blank#', text)
        path.write_text(text, encoding='utf-8')
    # Needs the site's address, which nobody knows here.
    for name in ('sitemap.xml', 'sitemap.xml.gz'):
        (site / name).unlink(missing_ok=True)
