"""Ulysses attention: sequence shards to head shards, attention, and back to sequence shards."""
import torch
import torch.distributed as dist


def to_heads(x: torch.Tensor) -> torch.Tensor:
    """[tokens, world * heads, dim] of the own tokens to [heads, world * tokens, dim] of the own heads."""
    world, (tokens, heads, dim) = dist.get_world_size(), x.shape
    sent = x.reshape(tokens, world, heads // world, dim).transpose(0, 1).contiguous()
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    return received.reshape(world * tokens, heads // world, dim).transpose(0, 1)


def operation(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
    """q, k, v: bfloat16, out: float32; all [tokens, world * heads, 64]."""
    q, k, v = (to_heads(x).float() for x in (q, k, v))
    attended = torch.softmax(q @ k.transpose(1, 2) / 8, dim=2) @ v
    sent = attended.transpose(0, 1).contiguous()
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    world, tokens = dist.get_world_size(), out.shape[0]
    out.copy_(received.reshape(world, tokens, -1, 64).transpose(0, 1).reshape(out.shape))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for tokens, heads in ((2, 1), (4, 2)):
        shape = (tokens, dist.get_world_size() * heads, 64)
        q, k = torch.randint(-3, 4, (2, *shape), device="cuda").bfloat16()
        v = (2 * torch.rand(shape, device="cuda") - 1).bfloat16()
        operation(q, k, v, torch.empty(shape, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
