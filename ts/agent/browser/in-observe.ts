/**
 * The visible elements of the page: controls, everything that listens for clicks, shapes, images and text. Light
 * DOM, shadow roots and frames of the same origin, in one pass.
 */
import type { PageApi, Place, RawElement, RawObservation } from './page-api.js';

export function installObserve(api: PageApi): void {
  interface Box {
    left: number;
    top: number;
    right: number;
    bottom: number;
  }
  const limit = 400;
  const controls =
    'a[href],button,input,select,textarea,summary,option,[role=button],[role=link],[role=checkbox],[role=radio],' +
    '[role=switch],[role=tab],[role=menuitem],[role=menuitemcheckbox],[role=menuitemradio],[role=option],' +
    '[role=treeitem],[role=slider],[role=spinbutton],[role=combobox],[role=textbox],[role=searchbox],[role=gridcell],' +
    '[contenteditable=""],[contenteditable=true],[onclick],[tabindex]:not([tabindex^="-"])';
  const shapes = 'circle,rect,ellipse,polygon,path,text';

  // Frames keep their own books.
  const booksOf = (element: Element): PageApi => {
    const view = element.ownerDocument.defaultView as
      | (Window & { [key: symbol]: PageApi | undefined })
      | null;
    return view?.[Symbol.for('boq')] ?? api;
  };

  api.isClickable = (element) => {
    if (element.matches('html,body')) return false;
    if (element.matches(controls)) return true;
    if (booksOf(element).listeners.has(element) || (element as HTMLElement).onclick) return true;
    if (getComputedStyle(element).cursor !== 'pointer') return false;
    const parent = api.parentOf(element);
    return parent === null || getComputedStyle(parent).cursor !== 'pointer';
  };

  api.elementAt = (x, y) => {
    let offsetX = 0;
    let offsetY = 0;
    let root: Document | ShadowRoot = document;
    let found: Element | null = null;
    for (let depth = 0; depth < 30; depth++) {
      const hit: Element | null = root.elementFromPoint(x - offsetX, y - offsetY);
      if (!hit || hit === found) break;
      found = hit;
      const shadow = api.shadowOf(hit);
      if (shadow) {
        root = shadow;
        continue;
      }
      if (hit.tagName !== 'IFRAME' && hit.tagName !== 'FRAME') break;
      const inner = api.documentOf(hit);
      if (!inner) break;
      const box = hit.getBoundingClientRect();
      offsetX += box.left + (hit as HTMLElement).clientLeft;
      offsetY += box.top + (hit as HTMLElement).clientTop;
      root = inner;
    }
    return found ? { element: found, offsetX, offsetY } : null;
  };

  const contains = (outer: Element, inner: Element): boolean => {
    for (let node: Element | null = inner; node; ) {
      if (node === outer) return true;
      const parent: Element | null = api.parentOf(node);
      if (parent) node = parent;
      else {
        const frame: Element | null | undefined = node.ownerDocument.defaultView?.frameElement;
        node = frame ?? null;
      }
    }
    return false;
  };

  // The part of an element that neither the viewport nor a scrolling or clipping ancestor cuts off.
  const clip = (box: Box, element: Element, place: Place, bounds: Box): Box | null => {
    const visible = {
      left: Math.max(box.left + place.offsetX, bounds.left),
      top: Math.max(box.top + place.offsetY, bounds.top),
      right: Math.min(box.right + place.offsetX, bounds.right),
      bottom: Math.min(box.bottom + place.offsetY, bounds.bottom),
    };
    let position = getComputedStyle(element).position;
    for (
      let node = api.parentOf(element);
      node && node !== node.ownerDocument.documentElement;
      node = api.parentOf(node)
    ) {
      if (position === 'fixed') break;
      const style = getComputedStyle(node);
      const clips = style.overflowX !== 'visible' || style.overflowY !== 'visible';
      if (
        clips &&
        node !== node.ownerDocument.body &&
        !(position === 'absolute' && style.position === 'static')
      ) {
        const outer = node.getBoundingClientRect();
        visible.left = Math.max(visible.left, outer.left + place.offsetX);
        visible.top = Math.max(visible.top, outer.top + place.offsetY);
        visible.right = Math.min(visible.right, outer.right + place.offsetX);
        visible.bottom = Math.min(visible.bottom, outer.bottom + place.offsetY);
      }
      if (style.position !== 'static') position = style.position;
    }
    return visible.right - visible.left >= 2 && visible.bottom - visible.top >= 2 ? visible : null;
  };

  // A point of the element that a click would really reach, and the visible box around it.
  const reach = (element: Element, place: Place, bounds: Box, strict: boolean): RawElement['box'] | null => {
    const rects = Array.from(element.getClientRects()).filter((rect) => rect.width >= 1 && rect.height >= 1);
    const ordered = rects.length > 1 ? rects.sort((a, b) => b.width * b.height - a.width * a.height) : rects;
    for (const rect of ordered.slice(0, 4)) {
      const box = clip(rect, element, place, bounds);
      if (!box) continue;
      for (const [fx, fy] of [
        [0.5, 0.5],
        [0.5, 0.12],
        [0.12, 0.5],
        [0.88, 0.5],
        [0.5, 0.88],
        [0.06, 0.1],
        [0.94, 0.1],
        [0.06, 0.9],
        [0.94, 0.9],
      ] as const) {
        const x = box.left + (box.right - box.left) * fx;
        const y = box.top + (box.bottom - box.top) * fy;
        const hit = api.elementAt(x, y)?.element;
        if (!hit) continue;
        const own = contains(element, hit) || (hit.contains(element) && hit.tagName === 'LABEL');
        if (!own) continue;
        // A row is clicked beside its own buttons.
        if (strict && hit !== element && innerControl(element, hit)) continue;
        const halfWidth = Math.min(x - box.left, box.right - x);
        const halfHeight = Math.min(y - box.top, box.bottom - y);
        if (fx === 0.5 && fy === 0.5) {
          return { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
        }
        return { x: x - halfWidth, y: y - halfHeight, width: 2 * halfWidth, height: 2 * halfHeight };
      }
    }
    return null;
  };

  const innerControl = (outer: Element, hit: Element): boolean => {
    for (let node: Element | null = hit; node && node !== outer; node = api.parentOf(node)) {
      if (api.isClickable(node)) return true;
    }
    return false;
  };

  const round = (value: number): number => Math.round(value * 10) / 10;

  const flag = (element: Element, attribute: string): boolean | null => {
    const value = element.getAttribute(attribute);
    return value === null ? null : value === 'true';
  };

  const describe = (
    element: Element,
    box: RawElement['box'],
    role: string,
    name: string,
  ): Omit<RawElement, 'id'> => {
    const tag = element.tagName.toLowerCase();
    const input = element as HTMLInputElement;
    const list = tag === 'select' ? (element as unknown as HTMLSelectElement) : null;
    const editable = (element as HTMLElement).isContentEditable;
    const hasValue =
      (tag === 'input' && role !== 'button' && role !== 'checkbox' && role !== 'radio') || tag === 'textarea';
    const value = list
      ? Array.from(list.selectedOptions, (option) => option.text).join(', ')
      : hasValue
        ? input.value
        : editable
          ? api.textOf(element)
          : '';
    const checkable = tag === 'input' && (input.type === 'checkbox' || input.type === 'radio');
    let focused: Element | null = element.ownerDocument.activeElement;
    while (focused && api.shadowOf(focused)?.activeElement)
      focused = api.shadowOf(focused)?.activeElement ?? null;
    return {
      role,
      name: name.slice(0, 200),
      tag,
      inputType: tag === 'input' ? input.type : '',
      value: value.slice(0, 500),
      checked: checkable ? input.checked : flag(element, 'aria-checked'),
      selected:
        tag === 'option'
          ? (element as unknown as HTMLOptionElement).selected
          : flag(element, 'aria-selected'),
      expanded:
        tag === 'summary'
          ? (element.parentElement?.hasAttribute('open') ?? false)
          : flag(element, 'aria-expanded'),
      disabled:
        element.matches(':disabled') ||
        element.getAttribute('aria-disabled') === 'true' ||
        input.readOnly === true,
      focused: focused === element,
      options: list ? Array.from(list.options, (option) => option.text.trim()) : [],
      box: { x: round(box.x), y: round(box.y), width: round(box.width), height: round(box.height) },
      context: api.contextOf(element),
    };
  };

  const collect = (
    root: Document | ShadowRoot,
    place: Place,
    bounds: Box,
    found: Omit<RawElement, 'id'>[],
  ): void => {
    // Elements come in document order, so a parent is decided before its children.
    const taken = new Set<Element>();
    const wrapped = new Set<Element>();
    const within = (set: Set<Element>, element: Element): boolean => {
      for (let node = element.parentElement; node; node = node.parentElement) if (set.has(node)) return true;
      return false;
    };
    for (const element of root.querySelectorAll('*')) {
      if (found.length >= limit) return;
      const rect = element.getBoundingClientRect();
      if (
        rect.right + place.offsetX <= bounds.left ||
        rect.bottom + place.offsetY <= bounds.top ||
        rect.left + place.offsetX >= bounds.right ||
        rect.top + place.offsetY >= bounds.bottom
      ) {
        continue;
      }
      const shadow = api.shadowOf(element);
      if (shadow) collect(shadow, place, bounds, found);
      if (rect.width < 1 && rect.height < 1) continue;
      const tag = element.tagName.toLowerCase();
      if (tag === 'iframe' || tag === 'frame') {
        const inner = api.documentOf(element);
        const box = inner ? clip(rect, element, place, bounds) : null;
        if (inner && box && element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) {
          const frame = element as HTMLElement;
          collect(
            inner,
            {
              element,
              offsetX: place.offsetX + rect.left + frame.clientLeft,
              offsetY: place.offsetY + rect.top + frame.clientTop,
            },
            box,
            found,
          );
        }
        continue;
      }
      const field = element.matches('input,select,textarea');
      if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: !field })) continue;
      if (tag === 'label') {
        // A label stands for its control only where the control itself cannot be seen.
        const control = (element as HTMLLabelElement).control;
        if (control && reach(control, place, bounds, false)) continue;
        if (!control && !booksOf(element).listeners.has(element)) continue;
      }
      const drawn = (element as SVGElement).ownerSVGElement;
      if (drawn) {
        const size = drawn.getBoundingClientRect();
        if (size.width < 40 || size.height < 40 || !element.matches(shapes) || element.closest('defs'))
          continue;
      } else if (tag === 'option' && !element.parentElement?.matches('select[multiple],select[size]')) {
        continue;
      }
      const clickable = tag === 'label' || api.isClickable(element);
      if (!clickable && !drawn) {
        // Text: a heading, an image, or a block with words of its own that no listed element says already.
        const says =
          tag === 'img' ||
          Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.textContent?.trim());
        if (!says || within(taken, element) || within(wrapped, element)) continue;
        if (element.matches('script,style,noscript,label,legend,option')) {
          if (tag !== 'legend' && tag !== 'label') continue;
        }
        const name = tag === 'img' ? api.nameOf(element) : api.textOf(element);
        const box = name ? reach(element, place, bounds, false) : null;
        if (!box) continue;
        wrapped.add(element);
        found.push(
          describe(element, box, api.roleOf(element) === 'label' ? 'text' : api.roleOf(element), name),
        );
        continue;
      }
      const inner =
        drawn || field
          ? []
          : Array.from(element.querySelectorAll('*')).filter((child) => api.isClickable(child));
      // A wrapper that listens on behalf of the controls inside, or for something else than clicks, adds nothing.
      if (tag === 'svg' && element.querySelector(shapes) && rect.width >= 40 && rect.height >= 40) continue;
      if (inner.length > 0 && !element.matches('a,button,summary')) {
        const own = element.matches(controls) || booksOf(element).clickListeners.has(element);
        if (!own) continue;
        if (api.textOf(element).length <= inner.map((child) => api.nameOf(child)).join(' ').length) continue;
        if (rect.width * rect.height > 0.45 * (bounds.right - bounds.left) * (bounds.bottom - bounds.top)) {
          continue;
        }
      }
      const box = reach(element, place, bounds, inner.length > 0);
      if (!box) continue;
      let name = api.nameOf(element);
      // A parent item of a menu or tree is called by its own words, not by those of the items inside.
      if (inner.length > 0 && !element.matches('button,a')) {
        const own = Array.from(element.childNodes)
          .filter(
            (node) =>
              node.nodeType === 3 ||
              (node.nodeType === 1 && !(node as Element).matches('ul,ol,[role=menu],[role=group]')),
          )
          .map((node) => (node.nodeType === 1 ? api.textOf(node as Element) : (node.textContent ?? '')))
          .join(' ')
          .replace(/\s+/g, ' ')
          .trim();
        if (own) name = own;
      }
      taken.add(element);
      found.push(describe(element, box, tag === 'label' ? labelRole(element) : api.roleOf(element), name));
    }
  };

  const labelRole = (label: Element): string => {
    const control = (label as HTMLLabelElement).control;
    return control ? api.roleOf(control) : 'clickable';
  };

  // What a scroll action would move: the document, or the largest area that scrolls inside it.
  const mainScroller = (): Element | null => {
    const page: Element | null = document.scrollingElement ?? document.documentElement;
    if (!page) return null;
    if (page.scrollHeight > page.clientHeight + 1) return page;
    let best: Element = page;
    let area = 0;
    for (const element of document.querySelectorAll('*')) {
      if (element.scrollHeight <= element.clientHeight + 1 || element.clientHeight < 20) continue;
      const overflow = getComputedStyle(element).overflowY;
      if (overflow !== 'auto' && overflow !== 'scroll') continue;
      const size = element.clientWidth * element.clientHeight;
      if (size > area) {
        area = size;
        best = element;
      }
    }
    return best;
  };

  api.observe = (): RawObservation => {
    const bounds = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    const found: Omit<RawElement, 'id'>[] = [];
    collect(document, { element: document.documentElement, offsetX: 0, offsetY: 0 }, bounds, found);
    const scroller = mainScroller();
    return {
      url: location.href,
      title: document.title,
      viewport: { width: innerWidth, height: innerHeight, deviceScaleFactor: devicePixelRatio },
      scroll: {
        x: Math.round(scroller?.scrollLeft ?? 0),
        y: Math.round(scroller?.scrollTop ?? 0),
        maxX: scroller ? Math.max(0, scroller.scrollWidth - scroller.clientWidth) : 0,
        maxY: scroller ? Math.max(0, scroller.scrollHeight - scroller.clientHeight) : 0,
      },
      elements: found.map((element, id) => ({ id, ...element })),
    };
  };
}
