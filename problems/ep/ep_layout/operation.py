"""Layout of a dispatch: tokens per rank and per expert, and which token goes to which rank."""
import torch
import torch.distributed as dist


def operation(ids, per, rank_tokens, expert_tokens, in_rank) -> None:
    """ids: [tokens, topk] int32; in_rank: [tokens, world] uint8; nothing crosses a link."""
    world = dist.get_world_size()
    expert_tokens.copy_(torch.bincount(ids.flatten(), minlength=world * per))
    in_rank.zero_()
    in_rank.scatter_(1, (ids // per).long(), 1)
    rank_tokens.copy_(in_rank.sum(dim=0))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per, topk = dist.get_world_size(), 32, 8
    for tokens in (256, 1024):
        ids = torch.rand(tokens, world * per, device="cuda").topk(topk).indices.to(torch.int32)
        operation(
            ids,
            per,
            torch.empty(world, dtype=torch.int32, device="cuda"),
            torch.empty(world * per, dtype=torch.int32, device="cuda"),
            torch.empty(tokens, world, dtype=torch.uint8, device="cuda"),
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
