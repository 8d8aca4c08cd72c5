from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '2.10.0a0+git5f3a1c2'
debug = False
cuda: Optional[str] = '13.0'
git_version = '53c0c9a74a9461fa4cb2fcd35df23b162707e245'
hip: Optional[str] = None
xpu: Optional[str] = None
