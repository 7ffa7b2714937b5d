# SPDX-License-Identifier: MIT
from os import PathLike
from types import TracebackType
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Type, Union, overload

import migraphx

_Path = Union[str, "PathLike[str]"]
_Message = Mapping[str, Any]
_Prompt = Union[str, Sequence[_Message], Sequence[int], Mapping[str, Any], Any]
_Piece = Union[str, List[int]]

class Answer(Iterator[_Piece]):
    tokens: List[int]
    text: Optional[str]
    ended: Optional[str]
    def __iter__(self) -> Answer: ...
    def __next__(self) -> _Piece: ...
    def close(self) -> None: ...
    def __enter__(self) -> Answer: ...
    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> bool: ...

class Model:
    folder: str
    generator: migraphx.generator
    def __init__(
        self,
        folder: _Path,
        target: str = "cpu",
        *,
        threads: int = 0,
        context: int = 0,
        names: Optional[Mapping[str, str]] = None,
        states: Optional[Mapping[str, str]] = None,
        isa: Optional[str] = None,
        draft: Optional[_Path] = None,
        cards: Optional[Sequence[int]] = None,
    ) -> None: ...
    @property
    def tokenizer(self) -> Any: ...
    def encode(self, text: str) -> List[int]: ...
    def decode(self, tokens: Sequence[int]) -> str: ...
    def chat(self, messages: Sequence[_Message], **values: Any) -> str: ...
    @overload
    def generate(
        self,
        prompt: _Prompt,
        *,
        stream: Literal[True] = True,
        max_tokens: Optional[int] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
        seed: Optional[int] = None,
        stop: Union[str, Sequence[str]] = (),
        bias: Union[None, Mapping[int, float], Sequence[float]] = None,
        guesses: int = 0,
        begin: Union[None, str, Sequence[int]] = None,
        language: Optional[str] = None,
        task: str = "transcribe",
    ) -> Answer: ...
    @overload
    def generate(
        self,
        prompt: _Prompt,
        *,
        stream: Literal[False],
        max_tokens: Optional[int] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        min_p: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
        seed: Optional[int] = None,
        stop: Union[str, Sequence[str]] = (),
        bias: Union[None, Mapping[int, float], Sequence[float]] = None,
        guesses: int = 0,
        begin: Union[None, str, Sequence[int]] = None,
        language: Optional[str] = None,
        task: str = "transcribe",
    ) -> _Piece: ...
    @overload
    def generate_many(self, prompts: Sequence[_Prompt], *, stream: Literal[True] = True, **settings: Any) -> Iterator[Tuple[int, _Piece]]: ...
    @overload
    def generate_many(self, prompts: Sequence[_Prompt], *, stream: Literal[False], **settings: Any) -> List[_Piece]: ...
    def statistics(self) -> Dict[str, float]: ...

def main(words: Optional[Sequence[str]] = None) -> None: ...
