// SPDX-License-Identifier: GPL-2.0
/* The popup: shows what background.js tells once a second. */

const LIMITS = {
  router: 'the router', 'congestion control': "the browser's congestion control",
  cpu: 'this computer', sender: 'the page, or its picture',
};

/** A rate for people. */
export function rate(bps) {
  return bps ? `${(bps / 1e6).toFixed(2)} Mbit/s` : 'none';
}

/** Who limits a flow, in words. */
export function who({ limit, router, cause, text, policed, overload }) {
  if (text) {
    return text;
  }
  const why = { none: 'no router has spoken yet; ', expired: 'the routers fell silent; ',
    lost: 'paqmd cannot be reached; ' }[cause] ?? '';
  const more = policed ? ', which polices it' : overload ? ', which is overloaded' : '';
  return why + (limit === 'router' ? `router ${router}${more}` : LIMITS[limit] ?? 'not known yet');
}

/** What stands below the table. */
export function trouble({ host, paqmd, flows, refused }) {
  const found = [];
  if (!flows.length) {
    found.push('No page sends video or sound.');
  } else if (!host.connected) {
    found.push(`paqm-native-host cannot be reached: ${host.text || 'starting'}`);
  } else if (!paqmd.connected) {
    found.push(`paqmd cannot be reached: ${paqmd.text || 'connecting'}`);
  }
  if (refused) {
    found.push(`Messages of pages that ask for too much, refused: ${refused}`);
  }
  return found.join(' ');
}

function show(state) {
  document.getElementById('flows').replaceChildren(...state.flows.map((flow) => {
    const row = document.createElement('tr');
    for (const [text, kind] of [
      [flow.origin], [rate(flow.rate), 'rate'], [rate(flow.sent), 'rate'], [who(flow)]]) {
      const cell = row.insertCell();
      cell.textContent = text;
      cell.className = kind ?? '';
    }
    return row;
  }));
  document.getElementById('state').textContent = trouble(state);
}

if (globalThis.chrome?.runtime?.connect) {
  chrome.runtime.connect({ name: 'popup' }).onMessage.addListener(show);
}
