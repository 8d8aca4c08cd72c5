from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '2.5.0a0+872d972e41.nv24.08'
debug = False
cuda: Optional[str] = '12.6'
git_version = 'ba8354d1f4877564700276ca81b36613157cf22c'
hip: Optional[str] = None
xpu: Optional[str] = None
