"""Rotary embedding of the keys, then keys and values of all ranks into the caches."""
import torch
import torch.distributed as dist


def operation(k, v, turns, k_cache, v_cache, past: int) -> None:
    world, (tokens, heads, dim) = dist.get_world_size(), k.shape
    cosines, sines = turns[:, 0, None, :], turns[:, 1, None, :]
    low, high = k.float().split(dim // 2, dim=2)
    rotated = torch.cat([low * cosines - high * sines, high * cosines + low * sines], dim=2)
    rows = slice(past, past + world * tokens)
    dist.all_gather_into_tensor(k_cache[rows], rotated.to(k.dtype))
    dist.all_gather_into_tensor(v_cache[rows], v)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    heads, dim, past = 2, 128, 8
    for tokens in (4, 48):
        k, v = torch.randn(2, tokens, heads, dim, dtype=torch.bfloat16, device="cuda")
        caches = torch.empty(2, past + dist.get_world_size() * tokens + 2, heads, dim, dtype=k.dtype, device="cuda")
        operation(k, v, torch.rand(tokens, 2, dim // 2, device="cuda"), *caches, past)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
