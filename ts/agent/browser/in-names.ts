/**
 * Role, name and context of an element, in the words a person would use. A small reading of the accessible name
 * computation that also copes with pages without any accessibility: icons are called after their class or id,
 * shapes and swatches after their colour.
 */
import type { PageApi } from './page-api.js';

export function installNames(api: PageApi): void {
  const fold = (text: string | null | undefined): string => (text ?? '').replace(/\s+/g, ' ').trim();
  const tagOf = (element: Element): string => element.tagName.toLowerCase();
  const attribute = (element: Element, name: string): string => fold(element.getAttribute(name));

  api.shadowOf = (element) => element.shadowRoot ?? api.shadowRoots.get(element) ?? null;
  api.documentOf = (frame) => {
    try {
      return (frame as HTMLIFrameElement).contentDocument;
    } catch {
      return null;
    }
  };
  api.parentOf = (element) => {
    if (element.parentElement) return element.parentElement;
    const root = element.getRootNode();
    return 'host' in root ? (root as ShadowRoot).host : null;
  };

  const inputRoles: Record<string, string> = {
    button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
    range: 'slider', number: 'spinbutton', search: 'searchbox', date: 'datefield', time: 'timefield',
    month: 'datefield', week: 'datefield', 'datetime-local': 'datefield', color: 'colorfield', file: 'filefield',
  }; // biome-ignore format: a table
  const tagRoles: Record<string, string> = {
    button: 'button', select: 'combobox', textarea: 'textbox', option: 'option', summary: 'button', img: 'image',
    h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading', h6: 'heading', label: 'label',
    th: 'columnheader', video: 'video', audio: 'audio', canvas: 'canvas', svg: 'image', iframe: 'frame',
    circle: 'graphic', rect: 'graphic', ellipse: 'graphic', polygon: 'graphic', path: 'graphic', text: 'graphic',
  }; // biome-ignore format: a table
  const knownRoles = new Set(
    (
      'button link checkbox radio switch textbox searchbox combobox listbox option tab menuitem menuitemcheckbox ' +
      'menuitemradio treeitem slider spinbutton heading img image gridcell cell row columnheader'
    ).split(' '),
  );

  api.roleOf = (element) => {
    const explicit = attribute(element, 'role').toLowerCase().split(' ')[0] ?? '';
    if (knownRoles.has(explicit)) return explicit === 'img' ? 'image' : explicit;
    const tag = tagOf(element);
    if (tag === 'input') return inputRoles[(element as HTMLInputElement).type] ?? 'textbox';
    if (tag === 'select') {
      const list = element as HTMLSelectElement;
      return list.multiple || list.size > 1 ? 'listbox' : 'combobox';
    }
    if (tag === 'a' && (element.hasAttribute('href') || api.isClickable(element))) return 'link';
    if ((element as HTMLElement).isContentEditable) return 'textbox';
    const byTag = tagRoles[tag];
    if (byTag && byTag !== 'image') return byTag;
    if (api.isClickable(element)) return 'clickable';
    return byTag ?? 'text';
  };

  // Visible text only; an input's text is its value and no name.
  api.textOf = (element) => {
    const html = element as HTMLElement;
    const text = fold(typeof html.innerText === 'string' ? html.innerText : element.textContent);
    if (text) return text;
    const shadow = api.shadowOf(element);
    if (shadow) return fold(Array.from(shadow.children, (child) => api.textOf(child)).join(' '));
    return '';
  };

  // A label's own words, without those of the controls inside it.
  const wordsOfLabel = (label: Element): string => {
    if (!label.querySelector('select,textarea,button,input')) return api.textOf(label);
    const parts = Array.from(label.childNodes, (node) => {
      if (node.nodeType === 3) return node.textContent ?? '';
      if (node.nodeType !== 1 || (node as Element).matches('select,textarea,button,input')) return '';
      return wordsOfLabel(node as Element);
    });
    return fold(parts.join(' '));
  };

  const labelsOf = (element: Element): string => {
    const labels = (element as HTMLInputElement).labels;
    if (!labels?.length) return '';
    return fold(Array.from(labels, wordsOfLabel).join(' '));
  };

  // Text directly before or after a field that has no label of its own: "Name: [____]", "[x] tea".
  const textBeside = (element: Element): string => {
    const afterwards = ['checkbox', 'radio'].includes((element as HTMLInputElement).type ?? '');
    const isField = (node: Node): boolean =>
      node.nodeType === 1 &&
      ((node as Element).matches('input,select,textarea,button') ||
        (node as Element).querySelector('input,select,textarea,button') !== null);
    const search = (start: Node, forward: boolean): string => {
      let node = forward ? start.nextSibling : start.previousSibling;
      while (node) {
        if (isField(node)) return '';
        const text = fold(node.nodeType === 1 ? api.textOf(node as Element) : node.textContent);
        if (text) return text.length <= 80 ? text : '';
        node = forward ? node.nextSibling : node.previousSibling;
      }
      return '';
    };
    const direct = search(element, afterwards) || search(element, !afterwards);
    if (direct) return direct;
    // One level up: <td>Name</td><td><input></td>, <div class=label>..</div><div><input></div>
    const parent = element.parentElement;
    if (parent && !parent.matches('body,form,html') && api.textOf(parent) === '')
      return search(parent, false);
    return '';
  };

  const wordsOfIdentifier = (identifier: string): string =>
    identifier
      .replace(/([a-z])([A-Z])/g, '$1 $2')
      .split(/[^A-Za-z]+/)
      .filter(
        (word) =>
          word.length > 2 &&
          !/^(btn|icon|ico|col|row|img|svg|div|css|glyphicon|fas|fab|material|hide|active|inner|wrapper|container)$/i.test(
            word,
          ),
      )
      .join(' ')
      .toLowerCase();

  const fromIdentifiers = (element: Element): string => {
    const own = wordsOfIdentifier(attribute(element, 'class')) || wordsOfIdentifier(element.id);
    if (own) return own;
    const inner = element.querySelector('[class],[title],[aria-label],[alt]');
    if (!inner) return '';
    return (
      attribute(inner, 'aria-label') ||
      attribute(inner, 'title') ||
      attribute(inner, 'alt') ||
      wordsOfIdentifier(attribute(inner, 'class'))
    );
  };

  const palette: [string, number, number, number][] = [
    ['black', 0, 0, 0], ['white', 255, 255, 255], ['gray', 128, 128, 128], ['red', 255, 0, 0],
    ['green', 0, 128, 0], ['lime', 0, 255, 0], ['blue', 0, 0, 255], ['yellow', 255, 255, 0],
    ['cyan', 0, 255, 255], ['magenta', 255, 0, 255], ['orange', 255, 165, 0], ['purple', 128, 0, 128],
    ['pink', 255, 192, 203], ['brown', 165, 42, 42], ['olive', 128, 128, 0], ['navy', 0, 0, 128],
    ['teal', 0, 128, 128], ['maroon', 128, 0, 0], ['silver', 192, 192, 192],
  ]; // biome-ignore format: a table
  const colourName = (css: string): string => {
    const channels = css.match(/[\d.]+/g)?.map(Number);
    if (!channels || channels.length < 3 || channels[3] === 0) return '';
    const [r = 0, g = 0, b = 0] = channels;
    let best = '';
    let distance = Number.POSITIVE_INFINITY;
    for (const [name, pr, pg, pb] of palette) {
      const d = (r - pr) ** 2 + (g - pg) ** 2 + (b - pb) ** 2;
      if (d < distance) {
        distance = d;
        best = name;
      }
    }
    return best;
  };

  const shapeWords: Record<string, string> = {
    rect: 'rectangle',
    polygon: 'polygon',
    path: 'shape',
    text: '',
  };
  const shapeName = (element: Element): string => {
    const tag = tagOf(element);
    const box = element.getBoundingClientRect();
    const text = fold(element.textContent);
    let shape = shapeWords[tag] ?? tag;
    if (tag === 'text') shape = text.length > 1 ? 'text' : /\d/.test(text) ? 'digit' : 'letter';
    if (tag === 'rect' && Math.abs(box.width - box.height) < 2) shape = 'square rectangle';
    if (tag === 'polygon') {
      const corners = (attribute(element, 'points').match(/-?[\d.]+/g)?.length ?? 0) / 2;
      if (corners === 3) shape = 'triangle';
      if (corners === 4) shape = 'rectangle';
    }
    const style = getComputedStyle(element);
    const colour = colourName(style.fill) || colourName(style.stroke);
    const svg = (element as SVGElement).ownerSVGElement;
    // Size in relation to the other shapes of the drawing, where they differ by much.
    let size = '';
    if (svg) {
      const sides = Array.from(svg.querySelectorAll(tag), (other) => {
        const rect = other.getBoundingClientRect();
        return Math.max(rect.width, rect.height);
      });
      const all = Array.from(svg.querySelectorAll('circle,rect,polygon,ellipse,path,text'), (other) => {
        const rect = other.getBoundingClientRect();
        return Math.max(rect.width, rect.height);
      }).concat(sides);
      const smallest = Math.min(...all);
      const largest = Math.max(...all);
      const own = Math.max(box.width, box.height);
      if (largest > smallest * 1.4) size = own - smallest < largest - own ? 'small' : 'large';
    }
    return fold(`${size} ${colour} ${shape} ${text}`);
  };

  const valueButtons = new Set(['button', 'submit', 'reset']);
  api.nameOf = (element) => {
    const tag = tagOf(element);
    const labelled = attribute(element, 'aria-labelledby')
      .split(' ')
      .map((id) => (id ? (element.getRootNode() as Document).getElementById?.(id) : null))
      .map((label) => (label ? wordsOfLabel(label) : ''))
      .join(' ');
    const explicit = fold(labelled) || attribute(element, 'aria-label');
    if (explicit) return explicit;
    if (tag === 'input' || tag === 'select' || tag === 'textarea') {
      const input = element as HTMLInputElement;
      if (valueButtons.has(input.type)) return fold(input.value) || attribute(element, 'title') || input.type;
      return (
        labelsOf(element) ||
        attribute(element, 'alt') ||
        attribute(element, 'placeholder') ||
        attribute(element, 'title') ||
        textBeside(element) ||
        wordsOfIdentifier(attribute(element, 'name')) ||
        wordsOfIdentifier(element.id)
      );
    }
    if (tag === 'img') {
      const file = attribute(element, 'src').split(/[?#]/)[0]?.split('/').pop() ?? '';
      return (
        attribute(element, 'alt') ||
        attribute(element, 'title') ||
        (file.startsWith('data:') ? '' : wordsOfIdentifier(file.replace(/\.\w+$/, '')))
      );
    }
    if ((element as SVGElement).ownerSVGElement) return shapeName(element);
    if ((element as HTMLElement).isContentEditable) {
      return attribute(element, 'data-placeholder') || attribute(element, 'title') || textBeside(element);
    }
    const text = api.textOf(element);
    if (text) return text;
    const image = element.querySelector('img[alt],svg title');
    const fallback =
      attribute(element, 'title') ||
      attribute(element, 'alt') ||
      attribute(element, 'data-tooltip') ||
      fold(image?.getAttribute('alt') ?? image?.textContent) ||
      fromIdentifiers(element);
    if (fallback && !/colou?r/.test(fallback)) return fallback;
    const swatch =
      tag === 'svg' || tag === 'canvas' ? '' : colourName(getComputedStyle(element).backgroundColor);
    return fold(`${swatch} ${fallback}`);
  };

  // A row: a list item, table row or article, or one of several siblings of the same make.
  const isRow = (element: Element): boolean => {
    if (element.matches('li,tr,article,fieldset,dl,[role=row],[role=listitem],[role=group],[role=dialog]'))
      return true;
    const make = element.className;
    if (typeof make !== 'string' || !make) return false;
    for (const sibling of [element.previousElementSibling, element.nextElementSibling]) {
      if (
        sibling &&
        sibling.tagName === element.tagName &&
        sibling.className.split?.(' ')[0] === make.split(' ')[0]
      )
        return true;
    }
    return false;
  };

  api.contextOf = (element) => {
    const own = api.nameOf(element);
    const parts: string[] = [];
    let heading = '';
    let node: Element | null = element;
    let climbed = 0;
    while (node && climbed < 12 && !node.matches('body,html')) {
      if (!heading && !element.matches('h1,h2,h3,h4,h5,h6')) {
        let sibling = node.previousElementSibling;
        for (let looked = 0; sibling && looked < 8 && !heading; looked++) {
          const title = sibling.matches('h1,h2,h3,h4,h5,h6,legend,caption,dt,[role=heading]')
            ? sibling
            : sibling.querySelector(
                ':scope > h1,:scope > h2,:scope > h3,:scope > h4,:scope > h5,:scope > h6',
              );
          if (title) heading = api.textOf(title);
          sibling = sibling.previousElementSibling;
        }
      }
      if (node !== element && parts.length === 0 && isRow(node)) {
        const text = api.textOf(node);
        if (text && text !== own && text.length <= 400) parts.push(text);
      }
      node = api.parentOf(node);
      climbed++;
    }
    if (heading && heading !== own && !parts.some((part) => part.includes(heading))) parts.push(heading);
    return parts.join(' / ').slice(0, 200);
  };
}
