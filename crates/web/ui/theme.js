// Set before the style is read, so that no page flashes in the other theme. Not a module: modules come later.
const chosen = localStorage.getItem('outlast.theme');
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
