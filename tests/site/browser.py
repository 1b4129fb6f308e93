#!/usr/bin/env python3
"""The site in a browser: every page, wide and on a phone, in a network that leads nowhere.

Each page must load without a message of the browser or of a script, request nothing from another server, and fit into
the width of its window. The search must find a manual by a word of it. The site is served on this machine, and this
script starts itself again in a network namespace with nothing in it but a loopback device (bwrap).

Usage: browser.py SITE [--shots FOLDER PAGE...]    with --shots: pictures of these pages instead of the test
"""
import base64
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

WIDE, PHONE = (1440, 900), (390, 844)
BROKEN_PATH = '/broken-on-purpose.html'
BROKEN = ('<!doctype html><link rel=icon href="data:,"><img src="http://example.invalid/x.png">'
          '<script>undefined.x</script><div style="width:2000px;margin-left:-8px">wide</div>')
failures = []


def fail(text):
    failures.append(text)
    print('FAIL', text)


class Chromium:
    """A headless browser, over the pipes of its DevTools protocol."""

    def __init__(self, profile):
        to_browser, self.to = os.pipe()
        self.come, from_browser = os.pipe()
        os.set_inheritable(to_browser, True)
        os.set_inheritable(from_browser, True)
        # It reads from descriptor 3 and writes to 4.
        line = (f'exec chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage'
                f' --disable-background-networking --no-first-run --remote-debugging-pipe --user-data-dir={profile}'
                f' about:blank 3<&{to_browser} 4>&{from_browser}')
        self.process = subprocess.Popen(['bash', '-c', line], close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.count, self.session, self.events = b'', 0, None, []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')

    def receive(self):
        while b'\0' not in self.rest:
            more = os.read(self.come, 1 << 20)
            if not more:
                raise RuntimeError('the browser has ended')
            self.rest += more
        message, _, self.rest = self.rest.partition(b'\0')
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        message = {'id': self.count, 'method': method, 'params': parameters}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.to, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.receive()
            if answer.get('id') == self.count:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            self.events.append(answer)

    def wait(self, method):
        while not any(event.get('method') == method for event in self.events):
            self.events.append(self.receive())

    def run(self, script):
        result = self.call('Runtime.evaluate', expression=script, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(json.dumps(result['exceptionDetails']))
        return result['result'].get('value')

    def resize(self, size):
        self.call('Emulation.setDeviceMetricsOverride', width=size[0], height=size[1], deviceScaleFactor=1,
                  mobile=False)

    def show(self, address, size, dark=False):
        self.resize(size)
        self.call('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        self.events = []
        self.call('Page.navigate', url=address)
        self.wait('Page.loadEventFired')

    def close(self):
        try:
            self.call('Browser.close')
        except (RuntimeError, OSError):
            pass
        self.process.wait()


def messages(events, origin):
    """What the browser complains of, and requests to others."""
    for event in events:
        method, values = event.get('method'), event.get('params', {})
        if method == 'Log.entryAdded':
            yield f'{values["entry"]["level"]}: {values["entry"]["text"]} {values["entry"].get("url", "")}'
        elif method == 'Runtime.exceptionThrown':
            yield json.dumps(values['exceptionDetails'])[:500]
        elif method == 'Runtime.consoleAPICalled':
            yield 'console: ' + json.dumps(values['args'])[:500]
        elif method == 'Network.requestWillBeSent':
            address = values['request']['url']
            if not address.startswith((origin, 'data:', 'blob:', 'about:')):
                yield f'a request to {address}'


# What is wider than the window; a table or a block of code may scroll by itself.
WIDTH = '''(() => { const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide <= 0) return "";
  const out = [...document.querySelectorAll("article *")]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3);
  return `${wide} pixels too wide: ` + out.map((e) => e.tagName + " " + e.textContent.slice(0, 60)).join("; ");
})()'''

# The theme loses what is typed before its index is there, and then everything: a reader sees that it is not ready.
SEARCH = '''(async () => {
  const until = async (done) => {
    for (let i = 0; i < 12000 && !done(); ++i) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const meta = document.querySelector(".md-search-result__meta"), first = meta.textContent;
  await until(() => meta.textContent !== first || !/nitializing/.test(first));
  const field = document.querySelector("[data-md-component=search-query]");
  field.focus();
  field.value = WORD;
  field.dispatchEvent(new Event("keyup", {bubbles: true}));
  const found = () => [...document.querySelectorAll(".md-search-result__link")].map((a) => a.href);
  await until(() => found().length);
  return found();
})()'''


def test(browser, site, origin):
    # One that is broken, first: else a test that sees nothing would pass.
    browser.show(origin + BROKEN_PATH, PHONE)
    seen = ' '.join(messages(browser.events, origin))
    for word in ('a request to http://example.invalid/x.png', 'ERR_', 'TypeError'):
        if word not in seen:
            fail(f'a broken page does not show: {word} is not in {seen}')
    if '1610 pixels too wide' not in browser.run(WIDTH):
        fail('a wide page does not show')

    pages = sorted(str(path.relative_to(site)) for path in site.rglob('*.html') if path.name != '404.html')
    for page in pages:
        browser.show(f'{origin}/{page}', WIDE)
        for size in (WIDE, PHONE):
            browser.resize(size)
            wide = browser.run(WIDTH)
            if wide:
                fail(f'{page}: at {size[0]} pixels {wide}')
        for message in messages(browser.events, origin):
            fail(f'{page}: {message}')
    browser.show(f'{origin}/index.html', WIDE)
    found = browser.run(SEARCH.replace('WORD', json.dumps('roofline')))
    if not any('judge.html' in address or 'scores.html' in address for address in found):
        fail(f'a search for "roofline" finds {found}')
    for message in messages(browser.events, origin):
        fail(f'search: {message}')
    print(f'{len(pages)} pages at two widths, {len(found)} results of a search')


def shots(browser, folder, pages, origin):
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        page, _, how = page.partition('@')
        for name, size in (('wide', WIDE), ('phone', PHONE)):
            browser.show(f'{origin}/{page}', size, dark=how == 'dark')
            # The colours of the first visit are kept.
            browser.run('localStorage.clear()')
            browser.show(f'{origin}/{page}', size, dark=how == 'dark')
            if how == 'whole':
                height = browser.run('document.documentElement.scrollHeight')
                browser.show(f'{origin}/{page}', (size[0], min(height, 12000)))
            if how.startswith('#'):
                browser.run(f'document.querySelector({json.dumps(how)}).scrollIntoView()')
            picture = browser.call('Page.captureScreenshot', format='png')['data']
            stem = page.replace('/', '-').removesuffix('.html') + (f'-{how.strip("#")}' if how else '')
            (folder / f'{stem}-{name}.png').write_bytes(base64.b64decode(picture))
            print(folder / f'{stem}-{name}.png')


class Quiet(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path != BROKEN_PATH:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(BROKEN.encode())

    def log_message(self, *_):
        pass


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    if 'ALLRANKS_ALONE' not in os.environ:
        for tool in ('chromium', 'bwrap'):
            if not shutil.which(tool):
                print(f'allranks-skip: {tool} is needed')
                return
        probe = ['bwrap', '--unshare-net', '--dev-bind', '/', '/', 'true']
        if subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode:
            print('allranks-skip: bwrap must be able to make a network namespace')
            return
        command = ['bwrap', '--unshare-net', '--dev-bind', '/', '/', '--die-with-parent',
                   '--setenv', 'ALLRANKS_ALONE', '1', sys.executable, *sys.argv]
        sys.exit(subprocess.run(command, check=False).returncode)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(profile)
        try:
            origin = f'http://127.0.0.1:{server.server_port}'
            if '--shots' in sys.argv:
                at = sys.argv.index('--shots')
                shots(browser, pathlib.Path(sys.argv[at + 1]), sys.argv[at + 2:], origin)
            else:
                test(browser, site, origin)
        finally:
            browser.close()
    sys.exit(bool(failures))


if __name__ == '__main__':
    main()
